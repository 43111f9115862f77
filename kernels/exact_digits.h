#pragma once

#include <bit>
#include <cstdint>

namespace sherd {

/// `value` to the nearest multiple of `unit` (a power of two), counted in units; `value` becomes
/// what is left, exactly. |value| < 2^51 units. Adding 1.5 * 2^52 units leaves the count in the
/// mantissa's low bits, so this is two additions and an integer subtraction, in vectors too.
inline std::int64_t take_digit(double& value, double unit) {
  const double magic = 0x1.8p52 * unit;
  const double shifted = value + magic;
  value -= shifted - magic;
  return std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(magic);
}

}  // namespace sherd
