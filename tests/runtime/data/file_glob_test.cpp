#include "runtime/data/file_glob.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {

TEST_CASE("a glob gives its files sorted by the bytes of their names, without folders", "[data]") {
  const TemporaryFolder folder;
  for (const char* name : {"b.txt", "a10.txt", "a9.txt", "B.txt", "other.csv"})
    folder.write(name, "x");
  std::filesystem::create_directory(folder.path("c.txt"));
  const std::vector<std::string> expected = {folder.path("B.txt"), folder.path("a10.txt"),
                                             folder.path("a9.txt"), folder.path("b.txt")};
  CHECK(matching_files(folder.path("*.txt")) == expected);
  CHECK(matching_files(folder.path("a?.txt")) == std::vector{folder.path("a9.txt")});
  CHECK(matching_files(folder.path("[bB].txt")).size() == 2);
}

TEST_CASE("a path that exists is taken as it is", "[data]") {
  const TemporaryFolder folder;
  folder.write("a[1].txt", "x");
  folder.write("a1.txt", "x");
  CHECK(matching_files(folder.path("a[1].txt")) == std::vector{folder.path("a[1].txt")});
}

TEST_CASE("nothing to read is an error that says why", "[data]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name) {
    return message_of<DataError>([&] { matching_files(folder.path(name)); });
  };
  CHECK_THAT(refusal("*.txt"), ContainsSubstring("no file matches"));
  CHECK_THAT(refusal("a.txt"), ContainsSubstring("there is no file"));
  CHECK_THAT(refusal("none/a.txt"), ContainsSubstring("none does not exist"));
  CHECK_THAT(refusal(""), ContainsSubstring("is a folder"));
}

}  // namespace sherd
