#include "kernels/non_finite.h"

#include <algorithm>

#include "kernels/counting.cuh"
#include "kernels/cuda_kernels.h"

namespace sherd::on_cuda {
namespace {

/// A test on integers, whatever the compiler may assume of floats.
__device__ bool is_non_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

template <int V, class T>
__global__ void find_kernel(const T* x, std::int64_t n, std::int64_t first_index,
                            std::int64_t* found) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 0;
  std::int64_t first = kNone;
  const auto look_at = [&](std::int64_t i, T value) {
    if (!is_non_finite(to_float(value))) return;
    ++count;
    first = i < first ? i : first;
  };
  const std::int64_t packs = n / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    const auto pack = load_pack<V>(x + p * V);
#pragma unroll
    for (int k = 0; k < V; ++k) look_at(p * V + k, pack.v[k]);
  }
  for (std::int64_t i = packs * V + thread_index(); i < n; i += thread_count()) look_at(i, x[i]);
  __syncwarp();
  add_to_count(found, count);
  // The smallest of integers is the same in any order; few have any.
  if (count > 0) atomicMin(reinterpret_cast<long long*>(found + 1), first_index + first);
}

}  // namespace

void find_non_finite(const Tensor& x, std::int64_t first_index, const Tensor& found,
                     Stream& stream) {
  const std::int64_t n = x.numel();
  if (n == 0) return;
  with_device_float(x.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(x);
    const auto launch = [&]<int V>() {
      constexpr std::int64_t kMostBlocks = 4096;  // so that few threads report
      const std::int64_t blocks = blocks_for((n + V - 1) / V);
      find_kernel<V>
          <<<static_cast<unsigned>(std::min(blocks, kMostBlocks)), kBlock, 0, cuda(stream)>>>(
              from, n, first_index, found.as<std::int64_t>());
      check_launch("find_non_finite");
    };
    is_aligned(from) ? launch.template operator()<kPack<T>>() : launch.template operator()<1>();
  });
}

}  // namespace sherd::on_cuda
