#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/exact_digits.h"
#include "kernels/fixed_point.h"
#include "kernels/host_device.h"

namespace sherd {

// The integers behind the scalar accumulators of kernels/fixed_point.h.

inline constexpr int kDigitBits = 40;
inline constexpr std::int64_t kDigitMask = (std::int64_t{1} << kDigitBits) - 1;
inline constexpr double kTopUnit = 0x1p34, kUnit2 = 0x1p-6, kUnit1 = 0x1p-46, kUnit0 = 0x1p-86;

/// A block of sum_of_squares_fast is summed in so many interleaved lanes, added in order, so that
/// the bits depend on no machine's vectors.
inline constexpr std::int64_t kSquareLanes = 16;

/// A sum on its way: digits of 40 bits and a top that cannot overflow; the rejected are counted.
struct ScalarSum {
  std::int64_t digits[kScalarLimbs - 1] = {};
  __int128 top = 0;
  std::int64_t rejected = 0;

  SHERD_HOST_DEVICE void operator+=(const ScalarSum& other) {
    for (int i = 0; i < kScalarLimbs - 1; ++i) digits[i] += other.digits[i];
    top += other.top;
    rejected += other.rejected;
    carry();
  }
  /// Brings the digits into [0, 2^40); what they are too large by goes up, to the top in the end.
  SHERD_HOST_DEVICE void carry() {
    std::int64_t over = 0;
    for (std::int64_t& digit : digits) {
      digit += over;
      over = digit >> kDigitBits;
      digit &= kDigitMask;
    }
    top += over;
  }
};

/// Digits of up to 2^22 values, added up without carrying.
struct DigitSums {
  std::int64_t d0 = 0, d1 = 0, d2 = 0, d3 = 0, rejected = 0;

  /// Adds one value, rounded to the last unit; it is rejected unless it fits.
  SHERD_HOST_DEVICE void add(double value) {
    const bool fits = std::abs(value) < kScalarLimit;  // false for NaN
    double rest = fits ? value : 0.0;
    rejected += fits ? 0 : 1;
    d3 += take_digit(rest, kTopUnit);
    d2 += take_digit(rest, kUnit2);
    d1 += take_digit(rest, kUnit1);
    d0 += take_digit(rest, kUnit0);
  }
  SHERD_HOST_DEVICE ScalarSum carried() const {
    ScalarSum sum{{d0, d1, d2}, d3, rejected};
    sum.carry();
    return sum;
  }
};

/// Adds `sum` to an accumulator; a total whose last limb would wrap is left out and counted.
SHERD_HOST_DEVICE inline void add_to_accumulator(const ScalarSum& sum, std::int64_t* limbs,
                                                 std::int64_t* non_finite) {
  ScalarSum total{{limbs[0], limbs[1], limbs[2]}, limbs[3], 0};
  total += sum;
  *non_finite += total.rejected;
  const bool fits = total.top <= std::numeric_limits<std::int64_t>::max() &&
                    total.top >= std::numeric_limits<std::int64_t>::min();
  if (!fits) {
    *non_finite += 1;
    return;
  }
  for (int i = 0; i < kScalarLimbs - 1; ++i) limbs[i] = total.digits[i];
  limbs[kScalarLimbs - 1] = static_cast<std::int64_t>(total.top);
}

}  // namespace sherd
