#include "runtime/io/folder_lock.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a folder is locked once, until the lock is gone", "[io]") {
  const TemporaryFolder folder;
  std::optional<FolderLock> first(folder.path());
  CHECK_THAT(message_of<ArgumentError>([&] { FolderLock second(folder.path()); }),
             ContainsSubstring("another run is writing into " + folder.path()));
  first.reset();
  CHECK_NOTHROW(FolderLock(folder.path()));
}

TEST_CASE("a folder that is not there cannot be locked", "[io]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of<ApiError>([&] { FolderLock lock(folder.path("gone")); }),
             ContainsSubstring(folder.path("gone")));
}
