#include "kernels/random_fill.h"

#include "kernels/launch.cuh"

namespace sherd {
namespace {

template <class T>
__global__ void random_kernel(std::int64_t n, T* out) {
  constexpr float kScale = 1.0f / 2147483648.0f;
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 0x9e3779b9u + 1u;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    const auto centred = static_cast<std::int32_t>(bits ^ (bits >> 16));
    out[i] = from_float<T>(static_cast<float>(centred) * kScale);
  }
}

}  // namespace

void fill_random(const Tensor& x, Stream& stream) {
  if (x.numel() == 0) return;
  with_device_float(x.dtype(), [&]<class T>() {
    random_kernel<<<blocks_for(x.numel()), kBlock, 0, cuda(stream)>>>(x.numel(), elements<T>(x));
    check_launch("fill_random");
  });
}

}  // namespace sherd
