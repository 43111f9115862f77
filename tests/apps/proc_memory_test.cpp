#include "apps/proc_memory.h"

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

TEST_CASE("a process's high-water mark is found in its status") {
  std::istringstream status("Name:\tsherd\nVmPeak:\t  99 kB\nVmHWM:\t      12 kB\nVmRSS:\t 8 kB\n");
  CHECK(proc_bytes(status, "VmHWM:") == 12 << 10);
  std::istringstream none("Name:\tsherd\n");
  CHECK(!proc_bytes(none, "VmHWM:").has_value());
  CHECK(peak_resident_bytes() > 1 << 20);
}
