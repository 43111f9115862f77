#include "apps/core_list.h"

#include <fmt/format.h>

#include <charconv>

namespace sherd {

std::string core_list_text(const std::vector<int>& cores) {
  if (cores.empty()) return "none";
  std::string text;
  for (std::size_t first = 0, next = 0; first < cores.size(); first = next) {
    next = first + 1;
    while (next < cores.size() && cores[next] == cores[next - 1] + 1) ++next;
    if (!text.empty()) text += ",";
    text += next == first + 1 ? fmt::format("{}", cores[first])
                              : fmt::format("{}-{}", cores[first], cores[next - 1]);
  }
  return text;
}

std::vector<int> parse_core_list(const std::string& text) {
  std::vector<int> cores;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) break;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc()) break;
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (read.ptr == end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  return cores;
}

}  // namespace sherd
