#pragma once

#include <cstdint>
#include <span>

#include "collectives/communicator.h"
#include "core/dtype.h"

namespace sherd {

/// What one rank does to its elements once it can see everybody's: out[i] = sources[0][i] op
/// sources[1][i] op …, in this order. bf16 and f16 are summed in f32 and rounded once, or not at
/// all where `out_dtype` is f32; integers wrap around; min and max of floats are NaN where one is.
/// `out` may be one of the sources. Allocates nothing.
void reduce_sources(std::span<const void* const> sources, DType dtype, std::int64_t numel,
                    ReduceOp op, void* out, DType out_dtype);

}  // namespace sherd
