#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// found [2] i64: found[0] += how many elements of x are NaN or infinite, and found[1] = the
/// smaller of itself and `first_index` + the index of the first of them. x is f32, bf16 or f16.
void find_non_finite(const Tensor& x, std::int64_t first_index, const Tensor& found,
                     Stream& stream);

}  // namespace sherd
