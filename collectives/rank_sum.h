#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/dtype.h"

namespace sherd {

/// out[i] = sum over ranks, in rank order and in f32, of parts[rank * stride + i]; parts are bf16
/// or f16, i < numel. Enqueued.
void sum_in_rank_order(const void* parts, DType dtype, std::int64_t stride, int ranks,
                       std::int64_t numel, float* out, cudaStream_t stream);

}  // namespace sherd
