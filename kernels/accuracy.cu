#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"

namespace sherd::on_cuda {
namespace {

/// A block a row. Integers add up to the same in any order.
template <class T>
__global__ void count_kernel(const T* logits, const std::int32_t* labels, std::int64_t classes,
                             unsigned long long* correct) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t label = labels[row];
  if (label < 0 || label >= classes) return;
  const T* from = logits + row * classes;
  const float own = to_float(from[label]);
  bool beaten = !(own == own);
  for (std::int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    const float other = to_float(from[c]);
    const bool behind = other < own || (other == own && c >= label);
    beaten = beaten || !behind;
  }
  const bool any = __syncthreads_or(beaten) != 0;
  if (threadIdx.x == 0 && !any) atomicAdd(correct, 1ull);
}

}  // namespace

void count_correct(const Tensor& logits, const Tensor& labels, const Tensor& correct,
                   Stream& stream) {
  if (logits.numel() == 0) return;
  const auto rows = static_cast<unsigned>(logits.dim(0));
  with_device_float(logits.dtype(), [&]<class T>() {
    count_kernel<<<rows, kBlock, 0, cuda(stream)>>>(
        elements<const T>(logits), elements<const std::int32_t>(labels), logits.dim(1),
        elements<unsigned long long>(correct));
    check_launch("count_correct");
  });
}

}  // namespace sherd::on_cuda
