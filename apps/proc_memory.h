#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <optional>
#include <string_view>

namespace sherd {

/// Bytes of a line such as "MemAvailable:   2048 kB", from the text of /proc/meminfo or
/// /proc/self/status. Nothing when there is no such line; throws ArgumentError when it has no
/// number.
std::optional<std::int64_t> proc_bytes(std::istream& text, std::string_view field);

/// The kernel's estimate of what can be taken without swapping, from the text of /proc/meminfo.
/// Throws ArgumentError when it is not there.
std::int64_t available_bytes(std::istream& meminfo);

/// How much more the control groups let this process take, page cache that can be dropped counted
/// as free: `root` is where they are mounted, `self` the text of /proc/self/cgroup. Both versions.
/// Nothing when none of them has a limit.
std::optional<std::int64_t> cgroup_room(const std::filesystem::path& root, std::istream& self);

/// What this process could take of its machine now: MemAvailable, or less where a control group
/// allows less. Throws ArgumentError as available_bytes does.
std::int64_t host_available_bytes();

/// The most memory that this process has had resident; 0 where the kernel does not tell. Pages of
/// other ranks' shared windows count once they were touched.
std::int64_t peak_resident_bytes();

}  // namespace sherd
