#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/fixed_point.h"
#include "kernels/host_device.h"

namespace sherd {

/// `value` to the nearest multiple of `unit` (a power of two), counted in units; `value` becomes
/// what is left, exactly. |value| < 2^51 units. Adding 1.5 * 2^52 units leaves the count in the
/// mantissa's low bits, so this is two additions and an integer subtraction, in vectors too.
SHERD_HOST_DEVICE inline std::int64_t take_digit(double& value, double unit) {
  const double magic = 0x1.8p52 * unit;
  const double shifted = value + magic;
  value -= shifted - magic;
  return std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(magic);
}

/// The two limbs of one float, and whether it was left out.
struct FixedPoint {
  std::int64_t high = 0;
  std::int64_t low = 0;
  std::int64_t rejected = 0;
};

inline constexpr double kHighUnit = 0x1p-26;
inline constexpr double kLowUnit = 0x1p-66;
inline constexpr int kLowBits = 40;  // kHighUnit / kLowUnit

SHERD_HOST_DEVICE inline FixedPoint split_fixed(float value) {
  const bool fits = std::abs(value) < kFixedPointLimit;  // false for NaN
  double rest = fits ? value : 0.0f;
  FixedPoint result;
  result.rejected = fits ? 0 : 1;
  result.high = take_digit(rest, kHighUnit);
  result.low = take_digit(rest, kLowUnit);
  return result;
}

/// Rounds once: the sum of the limbs is exact in 128 bits.
SHERD_HOST_DEVICE inline float join_fixed(std::int64_t high, std::int64_t low) {
  const __int128 units = (static_cast<__int128>(high) << kLowBits) + low;
  return static_cast<float>(units) * static_cast<float>(kLowUnit);
}

}  // namespace sherd
