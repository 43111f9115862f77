#include "runtime/config/byte_size.h"

#include <fmt/format.h>

#include <algorithm>
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
  for (const Unit& unit : kBinary) {
    const double scaled = static_cast<double>(bytes) / unit.size;
    if (scaled >= 1.0) return fmt::format("{:.1f} {}", scaled, unit.name);
  }
  return fmt::format("{} B", bytes);
}

std::string bytes_text_up(std::int64_t bytes) {
  constexpr double kTenths = 10.0;
  for (const Unit& unit : kBinary) {
    const double scaled = static_cast<double>(bytes) / unit.size;
    if (scaled < 1.0) continue;
    return fmt::format("{:.1f} {}", std::ceil(scaled * kTenths) / kTenths, unit.name);
  }
  return fmt::format("{} B", bytes);
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
