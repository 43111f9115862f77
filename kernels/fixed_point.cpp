#include "kernels/fixed_point.h"

#include <cmath>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/exact_digits.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

constexpr double kHighUnit = 0x1p-26;
constexpr double kLowUnit = 0x1p-66;
constexpr int kLowBits = 40;  // kHighUnit / kLowUnit

/// Splits x[first, last); returns how many values were left out.
template <class T>
std::int64_t split_range(const T* x, std::int64_t* high, std::int64_t* low, bool accumulate,
                         std::int64_t first, std::int64_t last) {
  std::int64_t rejected = 0;
#pragma omp simd reduction(+ : rejected)
  for (std::int64_t i = first; i < last; ++i) {
    const auto value = static_cast<float>(x[i]);
    const bool fits = std::abs(value) < kFixedPointLimit;  // false for NaN
    double rest = fits ? value : 0.0f;
    rejected += fits ? 0 : 1;
    const std::int64_t h = take_digit(rest, kHighUnit);
    const std::int64_t l = take_digit(rest, kLowUnit);
    high[i] = h + (accumulate ? high[i] : 0);
    low[i] = l + (accumulate ? low[i] : 0);
  }
  return rejected;
}

/// Rounds once: the sum of the limbs is exact in 128 bits.
float join(std::int64_t high, std::int64_t low) {
  const __int128 units = (static_cast<__int128>(high) << kLowBits) + low;
  return static_cast<float>(units) * static_cast<float>(kLowUnit);
}

}  // namespace

void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate, const Tensor& non_finite,
                    Stream& stream) {
  const std::int64_t n = x.numel();
  const OperandCheck check("to_fixed_point", stream);
  check.is_float(x, "x");
  check.is(limbs, "limbs", DType::i64, {kLimbs, n});
  check_count(check, non_finite);
  if (n == 0) return;
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = x.as<T>(), high = limbs.as<std::int64_t>(),
                     count = non_finite.as<std::int64_t>()] {
      *count += sum_blocks<std::int64_t>(n, [=](std::int64_t first, std::int64_t last) {
        return split_range(from, high, high + n, accumulate, first, last);
      });
    });
  });
}

void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream) {
  const std::int64_t n = x.numel();
  const OperandCheck check("from_fixed_point", stream);
  check_flat(check, x, "x", DType::f32, n);
  check.is(limbs, "limbs", DType::i64, {kLimbs, n});
  if (n == 0) return;
  enqueue(stream, [n, to = x.as<float>(), high = limbs.as<std::int64_t>()] {
    for_blocks(n, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = join(high[i], high[i + n]);
    });
  });
}

}  // namespace sherd
