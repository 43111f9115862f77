#include <algorithm>
#include <array>
#include <cmath>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/fixed_point.h"
#include "kernels/flat_check.h"
#include "kernels/scalar_accumulator.h"

namespace sherd {
namespace {

using UInt128 = unsigned __int128;

constexpr int kUnitExponent = -86;

/// Every value alone: its square, exact in double (48 bits), or itself.
struct Square {
  static double of(double x) { return x * x; }
};
struct Itself {
  static double of(double x) { return x; }
};

template <class Term>
ScalarSum sum_exact(const float* x, std::int64_t first, std::int64_t last) {
  std::int64_t d0 = 0, d1 = 0, d2 = 0, d3 = 0, rejected = 0;
#pragma omp simd reduction(+ : d0, d1, d2, d3, rejected)
  for (std::int64_t i = first; i < last; ++i) {
    DigitSums one;
    one.add(Term::of(x[i]));
    d0 += one.d0;
    d1 += one.d1;
    d2 += one.d2;
    d3 += one.d3;
    rejected += one.rejected;
  }
  return DigitSums{d0, d1, d2, d3, rejected}.carried();
}

/// In fixed lanes, so that the bits don't depend on the width of this machine's vectors.
ScalarSum sum_squares_fast(const float* x, std::int64_t first, std::int64_t last) {
  std::array<double, kSquareLanes> lanes{};
  const auto add = [&](std::int64_t i, std::int64_t count) {
#pragma omp simd
    for (std::int64_t l = 0; l < count; ++l) {
      const double value = x[i + l];
      lanes[static_cast<std::size_t>(l)] += value * value;
    }
  };
  std::int64_t i = first;
  for (; i + kSquareLanes <= last; i += kSquareLanes) add(i, kSquareLanes);
  add(i, last - i);
  double total = 0.0;
  for (const double lane : lanes) total += lane;
  DigitSums digits;
  digits.add(total);
  ScalarSum sum = digits.carried();
  if (sum.rejected != 0) {
    const auto bad = std::count_if(x + first, x + last, [](float v) { return !std::isfinite(v); });
    sum.rejected = std::max<std::int64_t>(bad, 1);
  }
  return sum;
}

void check_operands(const OperandCheck& check, const Tensor& x, const Tensor& sum,
                    const Tensor& non_finite) {
  check_flat(check, x, "x", DType::f32, x.numel());
  check_flat(check, sum, "sum", DType::i64, kScalarLimbs);
  check_count(check, non_finite);
}

/// Enqueues: sum += what `sum_block(x, first, last)` makes of every block.
template <class F>
void enqueue_sum(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream,
                 F sum_block) {
  enqueue(stream, [from = x.as<float>(), n = x.numel(), limbs = sum.as<std::int64_t>(),
                   count = non_finite.as<std::int64_t>(), sum_block] {
    const auto total = sum_blocks<ScalarSum>(
        n, [=](std::int64_t first, std::int64_t last) { return sum_block(from, first, last); });
    add_to_accumulator(total, limbs, count);
  });
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
  check_operands(OperandCheck("sum_of_squares_exact", stream), x, sum, non_finite);
  if (x.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::sum_of_squares_exact(x, sum, non_finite, stream);
  enqueue_sum(x, sum, non_finite, stream, &sum_exact<Square>);
}

void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream) {
  check_operands(OperandCheck("sum_of_squares_fast", stream), x, sum, non_finite);
  if (x.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::sum_of_squares_fast(x, sum, non_finite, stream);
  enqueue_sum(x, sum, non_finite, stream, &sum_squares_fast);
}

void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream) {
  check_operands(OperandCheck("sum_into", stream), x, sum, non_finite);
  if (x.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::sum_into(x, sum, non_finite, stream);
  enqueue_sum(x, sum, non_finite, stream, &sum_exact<Itself>);
}

std::int64_t scalar_sum_scratch_bytes(std::int64_t numel) {
  return block_count(numel) * static_cast<std::int64_t>(sizeof(ScalarSum));
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
