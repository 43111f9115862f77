#include "runtime/io/atomic_file.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd {

TEST_CASE("a file written atomically replaces the old one and leaves nothing beside it", "[io]") {
  const TemporaryFolder folder;
  for (const std::string content : {"first and longer", "second", ""}) {
    write_file_atomically(folder.path("latest"), content);
    CHECK(folder.read("latest") == content);
    CHECK_FALSE(std::filesystem::exists(folder.path("latest.tmp")));
  }
}

TEST_CASE("a file that is not committed leaves the old one as it was", "[io]") {
  const TemporaryFolder folder;
  folder.write("model", "old");
  {
    AtomicFile file(folder.path("model"));
    file.write("new", 3, 0);
    CHECK(std::filesystem::exists(folder.path("model.tmp")));
    CHECK(folder.read("model") == "old");
  }
  CHECK(folder.read("model") == "old");
  CHECK_FALSE(std::filesystem::exists(folder.path("model.tmp")));
}

TEST_CASE("what a crashed run left under the temporary name is written over", "[io]") {
  const TemporaryFolder folder;
  folder.write("model.tmp", "a long rest of a run that crashed");
  write_file_atomically(folder.path("model"), "short");
  CHECK(folder.read("model") == "short");
}

TEST_CASE("ranges arrive in any order from the owner and its guests", "[io]") {
  const TemporaryFolder folder;
  AtomicFile owner(folder.path("shared"));
  owner.resize(7);
  AtomicFile guest(folder.path("shared"), FileRole::guest);
  guest.write("gh", 2, 5);
  owner.write("abc", 3, 0);
  guest.commit();
  CHECK_FALSE(std::filesystem::exists(folder.path("shared")));
  owner.commit();
  CHECK(folder.read("shared") == std::string("abc\0\0gh", 7));
}

TEST_CASE("a guest that goes without committing removes nothing", "[io]") {
  const TemporaryFolder folder;
  AtomicFile owner(folder.path("shared"));
  owner.write("abc", 3, 0);
  { const AtomicFile guest(folder.path("shared"), FileRole::guest); }
  owner.commit();
  CHECK(folder.read("shared") == "abc");
}

TEST_CASE("a guest without an owner, and a folder that is missing, are errors with the path",
          "[io]") {
  const TemporaryFolder folder;
  const std::string missing = folder.path("nowhere/file");
  CHECK_THAT(message_of<ApiError>([&] { write_file_atomically(missing, "x"); }),
             ContainsSubstring(missing) && ContainsSubstring("No such file"));
  CHECK_THROWS_AS(AtomicFile(folder.path("alone"), FileRole::guest), ApiError);
}

TEST_CASE("a committed file takes no more", "[io]") {
  const TemporaryFolder folder;
  AtomicFile file(folder.path("done"));
  file.commit();
  CHECK_THROWS_AS(file.write("x", 1, 0), ArgumentError);
  CHECK_THROWS_AS(file.commit(), ArgumentError);
  CHECK(folder.read("done").empty());
}

TEST_CASE("a full device is reported when it is written", "[io]") {
  if (!std::filesystem::exists("/dev/full")) SKIP("no /dev/full here");
  const FileDescriptor full = open_for_writing("/dev/full", 1 /* O_WRONLY */);
  CHECK_THAT(message_of<ApiError>([&] { write_fully(full, "/dev/full", "x", 1, 0); }),
             ContainsSubstring("pwrite(/dev/full)") && ContainsSubstring("No space left"));
}

}  // namespace sherd
