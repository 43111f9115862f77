#include "kernels/rope.h"

#include <algorithm>

#include "kernels/cuda_kernels.h"
#include "kernels/head_rows.cuh"
#include "kernels/rope_rotation.cuh"

namespace sherd::on_cuda {
namespace {

/// Pairs whose sines and cosines a block holds at a time.
constexpr int kPairs = 512;

struct Rotation {
  alignas(32) float cosine[kPairs];
  alignas(32) float sine[kPairs];
};

/// blockIdx.x is the position, whose sines all heads of all samples of the block share; blocks of
/// one position (blockIdx.y) take every gridDim.y-th sample.
template <int V, class T>
__global__ void rope_kernel(T* packed, HeadRows heads, RopeShape shape, RopeSpec spec) {
  __shared__ Rotation rotation;
  const std::int64_t position = blockIdx.x;
  const std::int64_t half = heads.width / 2;
  for (std::int64_t first = 0; first < half; first += kPairs) {
    const int count = static_cast<int>(half - first < kPairs ? half - first : kPairs);
    __syncthreads();  // nobody reads the last pairs any more
    make_rotation(rotation.cosine, rotation.sine, first, count, heads.width, position, spec,
                  shape.sign);
    __syncthreads();
    const int packs = count / V;
    const int items = static_cast<int>(heads.heads) * packs;
    for (std::int64_t sample = blockIdx.y; sample < shape.samples; sample += gridDim.y) {
      const std::int64_t row = (sample * shape.positions + position) * heads.heads;
      for (int item = static_cast<int>(threadIdx.x); item < items;
           item += static_cast<int>(blockDim.x)) {
        const int of_head = item % packs * V;
        T* at = packed + heads.offset(row + item / packs) + first + of_head;
        auto a = load_pack<V>(at);
        auto b = load_pack<V>(at + half);
        const auto cosine = load_pack<V>(rotation.cosine + of_head);
        const auto sine = load_pack<V>(rotation.sine + of_head);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const Rotated pair = rotate(to_float(a.v[i]), to_float(b.v[i]), cosine.v[i], sine.v[i]);
          a.v[i] = from_float<T>(pair.first);
          b.v[i] = from_float<T>(pair.second);
        }
        store_pack(at, a);
        store_pack(at + half, b);
      }
    }
  }
}

/// Blocks for each position, so that short sequences fill the device too.
unsigned blocks_of_position(const RopeShape& shape) {
  constexpr std::int64_t kBlocks = 1024;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>(kBlocks / shape.positions, 1, shape.samples));
}

}  // namespace

void rope(const Tensor& qkv, int first_head, int heads, const RopeSpec& spec,
          RopeDirection direction, Stream& stream) {
  const HeadRows rows(qkv, first_head, heads);
  if (rows.rows == 0 || rows.width == 0) return;
  const RopeShape shape(qkv, direction);
  with_device_float(qkv.dtype(), [&]<class T>() {
    auto* packed = elements<T>(qkv);
    const dim3 grid(static_cast<unsigned>(shape.positions), blocks_of_position(shape));
    if (rows.width / 2 % kPack<T> == 0 && is_aligned(packed)) {
      rope_kernel<kPack<T>><<<grid, kBlock, 0, cuda(stream)>>>(packed, rows, shape, spec);
    } else {
      rope_kernel<1><<<grid, kBlock, 0, cuda(stream)>>>(packed, rows, shape, spec);
    }
    check_launch("rope");
  });
}

}  // namespace sherd::on_cuda
