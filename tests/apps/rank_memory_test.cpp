#include "apps/rank_memory.h"

#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "core/error.h"

using namespace sherd;

TEST_CASE("what the kernel has available is read, and its absence is told") {
  std::istringstream text(
      "MemTotal: 99 kB\nMemFree:  7 kB\nMemAvailable:   2048 kB\nBuffers: 1 kB");
  CHECK(available_bytes(text) == 2 << 20);
  std::istringstream none("MemTotal: 99 kB\n");
  CHECK_THROWS_AS(available_bytes(none), ArgumentError);
  std::istringstream odd("MemAvailable: many kB\n");
  CHECK_THROWS_AS(available_bytes(odd), ArgumentError);
}
