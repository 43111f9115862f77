#include "collectives/rank_sum.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/cuda/check.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 8;  // 16 bytes

template <class T>
struct alignas(16) Pack {
  T v[kPack];
};

template <class T>
__global__ void sum_kernel(const T* parts, std::int64_t stride, int ranks, std::int64_t numel,
                           float* out) {
  const std::int64_t packs = (numel + kPack - 1) / kPack;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; p < packs;
       p += step) {
    float sums[kPack] = {};
    for (int r = 0; r < ranks; ++r) {
      const auto pack = reinterpret_cast<const Pack<T>*>(parts + r * stride)[p];
#pragma unroll
      for (int i = 0; i < kPack; ++i) sums[i] += static_cast<float>(pack.v[i]);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const std::int64_t e = p * kPack + i;
      if (e < numel) out[e] = sums[i];
    }
  }
}

template <class T>
void launch(const void* parts, std::int64_t stride, int ranks, std::int64_t numel, float* out,
            cudaStream_t stream) {
  const std::int64_t packs = (numel + kPack - 1) / kPack;
  const auto blocks = static_cast<unsigned>((packs + kThreads - 1) / kThreads);
  sum_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const T*>(parts), stride, ranks, numel,
                                              out);
  check_launch("sum_in_rank_order");
}

}  // namespace

void sum_in_rank_order(const void* parts, DType dtype, std::int64_t stride, int ranks,
                       std::int64_t numel, float* out, cudaStream_t stream) {
  if (numel == 0) return;
  require(stride % kPack == 0, "parts lie at multiples of {} elements, got {}", kPack, stride);
  switch (dtype) {
    case DType::bf16:
      return launch<__nv_bfloat16>(parts, stride, ranks, numel, out, stream);
    case DType::f16:
      return launch<__half>(parts, stride, ranks, numel, out, stream);
    default:
      throw ArgumentError(fmt::format("expected bf16 or f16, got {}", name_of(dtype)));
  }
}

}  // namespace sherd
