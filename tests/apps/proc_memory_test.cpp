#include "apps/proc_memory.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "tests/runtime/temporary_folder.h"

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

namespace {

namespace fs = std::filesystem;

void write_group(const TemporaryFolder& folder, const std::string& group,
                 const std::vector<std::pair<std::string, std::string>>& files) {
  fs::create_directories(folder.path(group));
  for (const auto& [name, text] : files) folder.write(fs::path(group) / name, text);
}

std::optional<std::int64_t> room(const TemporaryFolder& folder, const std::string& self) {
  std::istringstream text(self);
  return cgroup_room(folder.path("."), text);
}

}  // namespace

TEST_CASE("a control group's room is its limit less what it uses and cannot drop") {
  const TemporaryFolder folder;
  CHECK(!room(folder, "0::/job\n"));
  write_group(folder, "job/step", {{"memory.max", "max\n"}, {"memory.current", "7\n"}});
  CHECK(!room(folder, "0::/job/step\n"));
  write_group(folder, "job",
              {{"memory.max", "1000\n"},
               {"memory.current", "600\n"},
               {"memory.stat", "anon 100\nactive_file 300\ninactive_file 200\n"}});
  CHECK(room(folder, "0::/job/step\n") == 600);
  CHECK(room(folder, "0::/job\n") == 600);
  CHECK(room(folder, "1:cpu:/elsewhere\n") == std::nullopt);
}

TEST_CASE("a group that a container does not show is that which it shows as the root") {
  const TemporaryFolder folder;
  write_group(folder, ".", {{"memory.max", "500\n"}, {"memory.current", "500\n"}});
  CHECK(room(folder, "0::/docker/abc\n") == 0);
}

TEST_CASE("the first version's groups are read too") {
  const TemporaryFolder folder;
  write_group(folder, "memory/job",
              {{"memory.limit_in_bytes", "1000"},
               {"memory.usage_in_bytes", "400"},
               {"memory.stat", "cache 9\ntotal_inactive_file 50\n"}});
  CHECK(room(folder, "12:cpu,cpuacct:/\n9:memory:/job\n0::/\n") == 650);
}

TEST_CASE("this machine has something available") { CHECK(host_available_bytes() > 1 << 20); }
