#include "runtime/io/mapped_file.h"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

TEST_CASE("a mapped file holds the bytes of the file", "[io]") {
  const TemporaryFolder folder;
  for (const std::string& content :
       {std::string(), std::string("x"), std::string(100'001, '\xA5')}) {
    const MappedFile file(folder.write("f", content));
    CHECK(file.size_bytes() == static_cast<std::int64_t>(content.size()));
    CHECK(text_of(file) == content);
  }
}

TEST_CASE("a mapped file can be moved and keeps its addresses", "[io]") {
  const TemporaryFolder folder;
  MappedFile first(folder.write("a", "abc"));
  const std::byte* address = first.bytes().data();
  MappedFile second(std::move(first));
  CHECK(second.bytes().data() == address);
  MappedFile third(folder.write("b", "defg"));
  third = std::move(second);
  CHECK(text_of(third) == "abc");
  CHECK(third.path() == folder.path("a"));
}

TEST_CASE("what cannot be read is a DataError with path and reason", "[io]") {
  const TemporaryFolder folder;
  const std::string missing = folder.path("missing");
  CHECK_THAT(message_of<DataError>([&] { MappedFile file(missing); }),
             ContainsSubstring(missing) && ContainsSubstring("No such file"));
  CHECK_THAT(message_of<DataError>([&] { MappedFile file(folder.path()); }),
             ContainsSubstring("a folder"));
  check_posix(::mkfifo(folder.path("pipe").c_str(), 0600), "mkfifo");
  CHECK_THAT(message_of<DataError>([&] { MappedFile file(folder.path("pipe")); }),
             ContainsSubstring("not a regular file"));
}

TEST_CASE("a file that became shorter is told before its missing bytes are touched", "[io]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("f", std::string(100'000, 'x'));
  MappedFile file(path);
  const MappedFile moved = std::move(file);
  CHECK_NOTHROW(moved.require_whole());
  std::filesystem::resize_file(path, 200'000);
  CHECK_NOTHROW(moved.require_whole());
  std::filesystem::resize_file(path, 99'999);
  CHECK_THAT(message_of<DataError>([&] { moved.require_whole(); }),
             ContainsSubstring("had 100000 bytes") && ContainsSubstring("now has 99999"));
}

}  // namespace sherd
