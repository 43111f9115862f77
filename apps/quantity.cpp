#include "apps/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace sherd {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

constexpr std::array kCounts = {Unit{1e12, "T"}, Unit{1e9, "B"}, Unit{1e6, "M"}, Unit{1e3, "k"}};

}  // namespace

std::string count_text(double count) {
  constexpr double kExact = 10.0;
  const bool small = count < kExact && count != std::floor(count);
  for (const Unit& unit : kCounts) {
    if (count >= unit.size) return fmt::format("{:.1f} {}", count / unit.size, unit.name);
  }
  return fmt::format("{:.{}f}", count, small ? 1 : 0);
}

std::string duration_text(double seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < kMinute) return fmt::format("{}s", whole);
  if (whole < kHour) return fmt::format("{}m {:02}s", whole / kMinute, whole % kMinute);
  return fmt::format("{}h {:02}m", whole / kHour, whole % kHour / kMinute);
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> groups;
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    next = first + 1;
    while (next < ranks.size() && ranks[next] == ranks[next - 1] + 1) ++next;
    const int last = ranks[next - 1];
    groups.push_back(last == ranks[first] ? std::to_string(last)
                                          : fmt::format("{}-{}", ranks[first], last));
  }
  const char* noun = ranks.size() == 1 ? "rank" : "ranks";
  if (groups.size() < 2) return fmt::format("{} {}", noun, fmt::join(groups, ""));
  const std::string last = groups.back();
  groups.pop_back();
  return fmt::format("{} {} and {}", noun, fmt::join(groups, ", "), last);
}

}  // namespace sherd
