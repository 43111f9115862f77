#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/dtype.h"

namespace sherd {

/// Elements from one part to the next, so that kernels read packs of 16 bytes.
constexpr std::int64_t part_stride(std::int64_t numel) { return (numel + 7) / 8 * 8; }

/// out[i] = sum over ranks, in rank order and in f32, of parts[rank * stride + i]; parts are bf16
/// or f16, i < numel. Enqueued.
void sum_in_rank_order(const void* parts, DType dtype, std::int64_t stride, int ranks,
                       std::int64_t numel, float* out, cudaStream_t stream);

}  // namespace sherd
