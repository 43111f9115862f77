#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/exact_digits.h"
#include "kernels/fixed_point.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

using Int128 = __int128;
using UInt128 = unsigned __int128;

constexpr int kDigitBits = 40;
constexpr std::int64_t kDigitMask = (std::int64_t{1} << kDigitBits) - 1;
constexpr std::array<double, kScalarLimbs> kUnits = {0x1p-86, 0x1p-46, 0x1p-6, 0x1p34};
constexpr int kUnitExponent = -86;

/// A sum on its way: digits of 40 bits and a top that cannot overflow; the rejected are counted.
struct ScalarSum {
  std::array<std::int64_t, kScalarLimbs - 1> digits{};
  Int128 top = 0;
  std::int64_t rejected = 0;

  void operator+=(const ScalarSum& other) {
    for (std::size_t i = 0; i < digits.size(); ++i) digits[i] += other.digits[i];
    top += other.top;
    rejected += other.rejected;
    carry();
  }
  /// Brings the digits into [0, 2^40); what they are too large by goes up, to the top in the end.
  void carry() {
    std::int64_t over = 0;
    for (std::int64_t& digit : digits) {
      digit += over;
      over = digit >> kDigitBits;
      digit &= kDigitMask;
    }
    top += over;
  }
};

/// One value, rounded to the last unit; rejected unless it fits.
ScalarSum split(double value) {
  ScalarSum sum;
  if (!(std::abs(value) < kScalarLimit)) {
    sum.rejected = 1;
    return sum;
  }
  sum.top = take_digit(value, kUnits[3]);
  for (std::size_t i = kUnits.size() - 1; i-- > 0;) sum.digits[i] = take_digit(value, kUnits[i]);
  sum.carry();
  return sum;
}

ScalarSum squares_exact(const float* x, std::int64_t first, std::int64_t last) {
  std::int64_t d0 = 0, d1 = 0, d2 = 0, d3 = 0, rejected = 0;
#pragma omp simd reduction(+ : d0, d1, d2, d3, rejected)
  for (std::int64_t i = first; i < last; ++i) {
    const double square = static_cast<double>(x[i]) * x[i];  // exact: 48 bits
    const bool fits = square < kScalarLimit;                 // false for NaN
    double rest = fits ? square : 0.0;
    rejected += fits ? 0 : 1;
    d3 += take_digit(rest, kUnits[3]);
    d2 += take_digit(rest, kUnits[2]);
    d1 += take_digit(rest, kUnits[1]);
    d0 += take_digit(rest, kUnits[0]);
  }
  ScalarSum sum{{d0, d1, d2}, d3, rejected};
  sum.carry();
  return sum;
}

/// In fixed lanes, so that the bits don't depend on the width of this machine's vectors.
ScalarSum squares_fast(const float* x, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kLanes = 16;
  std::array<double, kLanes> lanes{};
  const auto add = [&](std::int64_t i, std::int64_t count) {
#pragma omp simd
    for (std::int64_t l = 0; l < count; ++l) {
      const double value = x[i + l];
      lanes[static_cast<std::size_t>(l)] += value * value;
    }
  };
  std::int64_t i = first;
  for (; i + kLanes <= last; i += kLanes) add(i, kLanes);
  add(i, last - i);
  double total = 0.0;
  for (const double lane : lanes) total += lane;
  ScalarSum sum = split(total);
  if (sum.rejected != 0) {
    const auto bad = std::count_if(x + first, x + last, [](float v) { return !std::isfinite(v); });
    sum.rejected = std::max<std::int64_t>(bad, 1);
  }
  return sum;
}

/// Adds `sum` to an accumulator; a total whose last limb would wrap is left out and counted.
void add_to(std::int64_t* limbs, std::int64_t* non_finite, const ScalarSum& sum) {
  ScalarSum total{{limbs[0], limbs[1], limbs[2]}, limbs[3], 0};
  total += sum;
  *non_finite += total.rejected;
  const bool fits = total.top <= std::numeric_limits<std::int64_t>::max() &&
                    total.top >= std::numeric_limits<std::int64_t>::min();
  if (!fits) {
    *non_finite += 1;
    return;
  }
  std::copy(total.digits.begin(), total.digits.end(), limbs);
  limbs[3] = static_cast<std::int64_t>(total.top);
}

/// Checks the arguments and enqueues: sum += make(x, n).
template <class F>
void enqueue_sum(std::string_view operation, const Tensor& x, const Tensor& sum,
                 const Tensor& non_finite, Stream& stream, F make) {
  const OperandCheck check(operation, stream);
  check_flat(check, x, "x", DType::f32, x.numel());
  check_flat(check, sum, "sum", DType::i64, kScalarLimbs);
  check_count(check, non_finite);
  if (x.numel() == 0) return;
  enqueue(stream,
          [from = x.as<float>(), n = x.numel(), limbs = sum.as<std::int64_t>(),
           count = non_finite.as<std::int64_t>(), make] { add_to(limbs, count, make(from, n)); });
}

/// top * 2^80 + bottom, 0 <= bottom < 2^80, rounded once. Bits that are left out far below those
/// that count only matter as "there is more".
double round_once(UInt128 top, UInt128 bottom) {
  constexpr int kBottomBits = 2 * kDigitBits;
  constexpr int kEnoughBits = 55;                            // a double's 53, a half, and more
  constexpr int kDropped = kBottomBits + kEnoughBits - 128;  // what the rest may lose
  if (top == 0) return static_cast<double>(bottom);
  if (top >> kEnoughBits != 0) {
    return std::ldexp(static_cast<double>(top | (bottom != 0 ? 1u : 0u)), kBottomBits);
  }
  const bool more = (bottom & ((UInt128{1} << kDropped) - 1)) != 0;
  const UInt128 window = (top << (kBottomBits - kDropped)) | (bottom >> kDropped);
  return std::ldexp(static_cast<double>(window | (more ? 1u : 0u)), kDropped);
}

}  // namespace

void sum_of_squares_exact(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                          Stream& stream) {
  enqueue_sum("sum_of_squares_exact", x, sum, non_finite, stream,
              [](const float* from, std::int64_t n) {
                return sum_blocks<ScalarSum>(n, [=](std::int64_t first, std::int64_t last) {
                  return squares_exact(from, first, last);
                });
              });
}

void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream) {
  enqueue_sum("sum_of_squares_fast", x, sum, non_finite, stream,
              [](const float* from, std::int64_t n) {
                return sum_blocks<ScalarSum>(n, [=](std::int64_t first, std::int64_t last) {
                  return squares_fast(from, first, last);
                });
              });
}

void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream) {
  enqueue_sum("sum_into", x, sum, non_finite, stream, [](const float* from, std::int64_t n) {
    double total = 0.0;
    for (std::int64_t i = 0; i < n; ++i) total += from[i];
    return split(total);
  });
}

double scalar_value(const std::array<std::int64_t, kScalarLimbs>& limbs) {
  ScalarSum sum{{limbs[0], limbs[1], limbs[2]}, limbs[3], 0};
  sum.carry();
  const bool negative = sum.top < 0;
  if (negative) {
    for (std::int64_t& digit : sum.digits) digit = -digit;
    sum.top = -sum.top;
    sum.carry();
  }
  const UInt128 top =
      (static_cast<UInt128>(sum.top) << kDigitBits) | static_cast<UInt128>(sum.digits[2]);
  const UInt128 bottom =
      (static_cast<UInt128>(sum.digits[1]) << kDigitBits) | static_cast<UInt128>(sum.digits[0]);
  const double magnitude = std::ldexp(round_once(top, bottom), kUnitExponent);
  return negative ? -magnitude : magnitude;
}

}  // namespace sherd
