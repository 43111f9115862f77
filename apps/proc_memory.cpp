#include "apps/proc_memory.h"

#include <fstream>
#include <string>

#include "core/error.h"

namespace sherd {

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

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  return proc_bytes(status, "VmHWM:").value_or(0);
}

}  // namespace sherd
