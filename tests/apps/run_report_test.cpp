#include "apps/run_report.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a model that would not fit its file system is refused") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(require_room(folder.path(), 1));
  CHECK_THROWS_WITH(require_room(folder.path(), std::int64_t{1} << 60),
                    ContainsSubstring("takes") && ContainsSubstring(folder.path()) &&
                        ContainsSubstring("are free"));
}
