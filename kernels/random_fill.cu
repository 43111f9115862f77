#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"
#include "kernels/random_word.h"

namespace sherd::on_cuda {
namespace {

template <class T>
__global__ void random_kernel(std::int64_t n, T* out) {
  for (std::int64_t i = thread_index(); i < n; i += thread_count()) {
    out[i] = from_float<T>(random_word(i));
  }
}

}  // namespace

void fill_random(const Tensor& x, Stream& stream) {
  with_device_float(x.dtype(), [&]<class T>() {
    random_kernel<<<blocks_for(x.numel()), kBlock, 0, cuda(stream)>>>(x.numel(), elements<T>(x));
    check_launch("fill_random");
  });
}

}  // namespace sherd::on_cuda
