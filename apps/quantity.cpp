#include "apps/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace sherd {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

constexpr std::array kBinary = {Unit{0x1p40, "TiB"}, Unit{0x1p30, "GiB"}, Unit{0x1p20, "MiB"},
                                Unit{0x1p10, "KiB"}};
constexpr std::array kDecimal = {Unit{1e12, "TB"}, Unit{1e9, "GB"}, Unit{1e6, "MB"},
                                 Unit{1e3, "KB"}, Unit{1, "B"}};
constexpr std::array kCounts = {Unit{1e12, "T"}, Unit{1e9, "B"}, Unit{1e6, "M"}, Unit{1e3, "k"}};

template <class Units>
std::string scaled(double value, const Units& units, const std::string& otherwise) {
  for (const auto& unit : units) {
    if (value >= unit.size) return fmt::format("{:.1f} {}", value / unit.size, unit.name);
  }
  return otherwise;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

double unit_size(std::string_view name) {
  if (name.empty()) return 1.0;
  for (const auto& unit : kBinary) {
    if (name == unit.name || (name.size() == 1 && name[0] == unit.name[0])) return unit.size;
  }
  for (const auto& unit : kDecimal) {
    if (name == unit.name) return unit.size;
  }
  return 0.0;
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), kBinary, fmt::format("{} B", bytes));
}

std::string count_text(double count) {
  constexpr double kExact = 10.0;
  const bool small = count < kExact && count != std::floor(count);
  return scaled(count, kCounts, fmt::format("{:.{}f}", count, small ? 1 : 0));
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
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

std::int64_t parse_bytes(std::string_view text) {
  const std::string_view word = trimmed(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const auto used = static_cast<std::size_t>(end - word.data());
  const double unit = error == std::errc() ? unit_size(trimmed(word.substr(used))) : 0.0;
  const double bytes = value * unit;
  require(bytes >= 1.0 && bytes < 0x1p62,
          "\"{}\" is no size: write bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB or TB, "
          "such as 24GiB",
          text);
  return static_cast<std::int64_t>(bytes);
}

std::vector<std::int64_t> parse_byte_list(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    sizes.push_back(parse_bytes(text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return sizes;
}

}  // namespace sherd
