#pragma once

#include <array>
#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

// Order-independent sums. A float is split into two signed integers, `high` in units of 2^-26 and
// `low` in units of 2^-66, and integers are added: any order, any grouping, the same bits. `high`
// holds |x| < 2^14 in 40 bits and sums of up to 2^23 such values without overflow; a value that is
// not finite or not below the limit counts as non-finite instead of being added, so nothing wraps
// in silence. What is below 2^-67 rounds away. After Demmel & Nguyen, "Parallel Reproducible
// Summation" (2015), with fixed bins.

/// limbs [2, n] i64: row 0 high, row 1 low.
inline constexpr int kLimbs = 2;
/// Magnitudes from here on are not represented.
inline constexpr float kFixedPointLimit = 0x1p14f;

/// Splits x [n] (f32, bf16, f16) into limbs [2, n], added to what is there or overwriting it.
/// non_finite (1 element, i64) is increased by the number of values that could not be represented.
void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate, const Tensor& non_finite,
                    Stream& stream);

/// x [n] f32 = limbs [2, n], rounded once to nearest (even).
void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream);

/// An exact accumulator of one scalar, enough for squares of floats and for losses: [4] i64, four
/// limbs of 40 bits in units of 2^-86, 2^-46, 2^-6 and 2^34. What is added is rounded to a multiple
/// of 2^-86 first; what is not finite or not below 2^74 in magnitude counts as non-finite. Every
/// operation leaves the limbs in their one canonical form (0 <= limb < 2^40 but for the last, which
/// carries the sign), so accumulators of equal value are equal bit for bit, and accumulators of up
/// to 2^22 ranks may be added limb by limb before they are read.
inline constexpr int kScalarLimbs = 4;
inline constexpr double kScalarLimit = 0x1p74;

/// sum += Σ x[i]² over x [n] f32, every square added alone: the same bits however x is cut.
void sum_of_squares_exact(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                          Stream& stream);
/// sum += Σ x[i]² over x [n] f32, summed in double over blocks whose cuts depend on n alone, each
/// added as one value. non_finite counts the elements that spoiled a block, or 1 for a block that
/// overflowed.
void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream);
/// sum += Σ x[i] over x [n] f32, every value added alone.
void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream);

/// Scratch that a CUDA stream needs for any of these sums over n values.
std::int64_t scalar_sum_scratch_bytes(std::int64_t numel);

/// The value of a scalar accumulator, rounded once to nearest (even), on the host.
double scalar_value(const std::array<std::int64_t, kScalarLimbs>& limbs);

}  // namespace sherd
