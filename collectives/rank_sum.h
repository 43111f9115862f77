#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "collectives/part_stride.h"
#include "core/tensor.h"

namespace sherd {

/// out[i] = sum over ranks, in rank order and in f32, of parts[rank * stride + i]; parts are bf16
/// or f16, `out` is f32. Enqueued.
void sum_in_rank_order(const void* parts, DType dtype, std::int64_t stride, int ranks,
                       const Tensor& out, cudaStream_t stream);

/// Ranks of one node.
inline constexpr int kMostPeers = 16;

/// Where each rank's part lies: in this GPU's memory or in a peer's, at any address.
struct RankParts {
  std::array<const void*, kMostPeers> data{};
  int ranks = 0;
};

/// The same with parts anywhere, of any reducible dtype, into that dtype or, from 16 bits, f32.
/// Sums are made in f32 from 16 bits, else in the dtype of the parts. `out` may be a part.
void sum_in_rank_order(const RankParts& parts, DType dtype, const Tensor& out, cudaStream_t stream);

}  // namespace sherd
