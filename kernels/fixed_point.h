#pragma once

#include <array>
#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

// Order-independent sums. A float is split into two signed integers, `high` in units of 2^-26 and
// `low` in units of 2^-66, and integers are added: any order, any grouping, the same bits. `high`
// holds |x| < 2^14 in 40 bits and sums of up to 2^23 such values without overflow; a value that is
// not finite or not below kLimit counts as non-finite instead of being added, so nothing wraps in
// silence. What is below 2^-67 rounds away. After Demmel & Nguyen, "Parallel Reproducible
// Summation" (2015), with fixed bins.

/// limbs [2, n] i64: row 0 high, row 1 low.
inline constexpr int kLimbs = 2;

/// Splits x [n] (f32, bf16, f16) into limbs [2, n], added to what is there or overwriting it.
/// non_finite (1 element, i64) is increased by the number of values that could not be represented.
void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate,
                    const Tensor& non_finite, Stream& stream);

/// x [n] f32 = limbs [2, n], rounded once to nearest.
void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream);

/// An exact accumulator of one scalar: four limbs of 40 bits in units 2^-86, 2^-46, 2^-6 and 2^34, enough for squares of floats
/// and for losses. [4] i64.
inline constexpr int kScalarLimbs = 4;

/// sum += Σ x[i]² over x [n] f32, every square added exactly as its double value: the same bits however x is cut.
void sum_of_squares_exact(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                          Stream& stream);
/// sum += Σ x[i]² over x [n] f32, in double and in the order of x, then added as one value.
void sum_of_squares_fast(const Tensor& x, const Tensor& sum, const Tensor& non_finite,
                         Stream& stream);
/// sum += Σ x[i] over x [n] f32, in double and in the order of x, then added as one value.
void sum_into(const Tensor& x, const Tensor& sum, const Tensor& non_finite, Stream& stream);

/// The value of a scalar accumulator, on the host.
double scalar_value(const std::array<std::int64_t, kScalarLimbs>& limbs);

}  // namespace sherd
