#include "kernels/dropout.h"

#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"

namespace sherd::on_cuda {
namespace {

constexpr int kWords = 4;  // of one block of random numbers

template <class T>
struct DropoutOperands {
  const T* x;
  const T* residual;  ///< may be null
  T* y;
  std::int64_t numel;
  float probability, scale;
  DropoutKey key;
  std::uint64_t first_index;
  bool packed;  ///< random blocks begin where packs of kWords elements begin
};

/// Element x, kept or dropped, onto `residual`.
template <class T>
__device__ T drop(const DropoutOperands<T>& o, T x, T residual, std::uint32_t word) {
  const float kept = unit_interval(word) >= o.probability ? to_float(x) * o.scale : 0.0f;
  // Not contracted with the product: CPUs round it first.
  return from_float<T>(o.residual == nullptr ? kept : __fadd_rn(to_float(residual), kept));
}

/// A thread draws a block of random numbers for its four elements, some of which may lie outside.
template <class T>
__global__ void dropout_kernel(DropoutOperands<T> o, std::int64_t blocks) {
  const auto before = static_cast<std::int64_t>(o.first_index % kWords);
  const RngKey key = current(o.key);
  for (std::int64_t block = thread_index(); block < blocks; block += thread_count()) {
    const auto words =
        random_words(key, o.first_index / kWords + static_cast<std::uint64_t>(block));
    const std::int64_t first = block * kWords - before;
    if (o.packed && first + kWords <= o.numel) {
      auto pack = load_pack<kWords>(o.x + first);
      auto residual = pack;
      if (o.residual != nullptr) residual = load_pack<kWords>(o.residual + first);
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        pack.v[k] = drop(o, pack.v[k], residual.v[k], words[k]);
      }
      store_pack(o.y + first, pack);
      continue;
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      const std::int64_t i = first + k;
      if (i < 0 || i >= o.numel) continue;
      o.y[i] = drop(o, o.x[i], o.residual == nullptr ? o.x[i] : o.residual[i], words[k]);
    }
  }
}

}  // namespace

void dropout(const Tensor& x, const Tensor& residual, const Tensor& y, float probability,
             const DropoutKey& key, std::uint64_t first_index, Stream& stream) {
  if (x.numel() == 0) return;
  with_device_float(x.dtype(), [&]<class T>() {
    constexpr std::int64_t kPackSize = kWords * static_cast<std::int64_t>(sizeof(T));
    const bool packed = first_index % kWords == 0 && is_aligned(x.data(), kPackSize) &&
                        is_aligned(residual.data(), kPackSize) && is_aligned(y.data(), kPackSize);
    const DropoutOperands<T> o{elements<const T>(x),
                               elements<const T>(residual),
                               elements<T>(y),
                               x.numel(),
                               probability,
                               1.0f / (1.0f - probability),
                               key,
                               first_index,
                               packed};
    const auto before = static_cast<std::int64_t>(first_index % kWords);
    const std::int64_t blocks = (before + x.numel() + kWords - 1) / kWords;
    dropout_kernel<<<blocks_for(blocks), kBlock, 0, cuda(stream)>>>(o, blocks);
    check_launch("dropout");
  });
}

}  // namespace sherd::on_cuda
