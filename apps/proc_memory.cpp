#include "apps/proc_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"

namespace sherd {
namespace {

namespace fs = std::filesystem;

/// The files of a version of control groups.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  ///< the line of memory.stat
};
constexpr CgroupFiles kFirst = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr CgroupFiles kSecond = {"memory.max", "memory.current", "inactive_file"};

/// The number in a file; nothing when there is none, as in "max".
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream text(file);
  std::int64_t number = 0;
  if (text >> number) return number;
  return std::nullopt;
}

std::int64_t stat_bytes(const fs::path& file, std::string_view field) {
  std::ifstream text(file);
  std::string name;
  for (std::int64_t bytes = 0; text >> name >> bytes;) {
    if (name == field) return bytes;
  }
  return 0;
}

std::optional<std::int64_t> room_in(const fs::path& group, const CgroupFiles& files) {
  const auto limit = number_in(group / files.limit);
  const auto usage = number_in(group / files.usage);
  if (!limit || !usage) return std::nullopt;
  const std::int64_t cache = stat_bytes(group / "memory.stat", files.cache);
  return std::max<std::int64_t>(0, *limit - *usage + std::min(cache, *usage));
}

/// The least of a group's and those that it is in; groups that are not to be seen from inside a
/// container have no files.
std::optional<std::int64_t> least_room(const fs::path& root, fs::path group,
                                       const CgroupFiles& files) {
  std::optional<std::int64_t> least;
  for (bool more = true; more; group = group.parent_path()) {
    const auto room = room_in(root / group.relative_path(), files);
    if (room) least = std::min(*room, least.value_or(*room));
    more = group.has_relative_path();
  }
  return least;
}

}  // namespace

std::optional<std::int64_t> proc_bytes(std::istream& text, std::string_view field) {
  constexpr std::int64_t kKibibyte = 1024;
  std::string name;
  for (std::int64_t kibibytes = 0; text >> name;) {
    if (name != field) continue;
    require(static_cast<bool>(text >> kibibytes) && kibibytes > 0, "/proc: {} has no number",
            field);
    return kibibytes * kKibibyte;
  }
  return std::nullopt;
}

std::int64_t available_bytes(std::istream& meminfo) {
  const std::optional<std::int64_t> bytes = proc_bytes(meminfo, "MemAvailable:");
  require(bytes.has_value(),
          "/proc/meminfo has no MemAvailable; say what each rank may take with placement.memory");
  return *bytes;
}

std::optional<std::int64_t> cgroup_room(const fs::path& root, std::istream& self) {
  std::optional<std::int64_t> least;
  for (std::string line; std::getline(self, line);) {  // number:controllers:group
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    std::optional<std::int64_t> room;
    if (controllers.empty()) room = least_room(root, group, kSecond);
    if (controllers == "memory") room = least_room(root / "memory", group, kFirst);
    if (room) least = std::min(*room, least.value_or(*room));
  }
  return least;
}

std::int64_t host_available_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  const std::int64_t available = available_bytes(meminfo);
  std::ifstream self("/proc/self/cgroup");
  return std::min(available, cgroup_room("/sys/fs/cgroup", self).value_or(available));
}

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  return proc_bytes(status, "VmHWM:").value_or(0);
}

}  // namespace sherd
