#include "runtime/io/file.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a file is read whole, or says why not", "[io]") {
  const TemporaryFolder folder;
  for (const std::string& content : {std::string(), std::string(300'001, '\xA5')}) {
    CHECK(read_file(folder.write("f", content)) == content);
  }
  const auto error = [](const std::string& path) {
    return message_of<DataError>([&] { read_file(path); });
  };
  CHECK_THAT(error(folder.path("gone")), ContainsSubstring("gone: No such file"));
  CHECK_THAT(error(folder.path("")), ContainsSubstring("a folder"));
}

TEST_CASE("a file that ends before its size is an error", "[io]") {
  const std::string shorter = "/sys/devices/system/cpu/online";  // says a page, has a line
  if (!std::filesystem::exists(shorter)) SKIP("no sysfs here");
  CHECK_THAT(message_of<DataError>([&] { read_file(shorter); }),
             ContainsSubstring("it had 4096 bytes, and has become shorter"));
}
