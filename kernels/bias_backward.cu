#include "kernels/column_sums.cuh"
#include "kernels/cuda_kernels.h"

namespace sherd::on_cuda {

void bias_backward(const Tensor& dy, const Tensor& dbias, Accumulate accumulate, Stream& stream) {
  const std::int64_t width = dbias.numel();
  const std::int64_t rows = width == 0 ? 0 : dy.numel() / width;
  with_device_sums(dy.dtype(), dbias.dtype(), [&]<class T, class G>() {
    column_sums("bias_backward", elements<const T>(dy), rows, width, elements<G>(dbias), accumulate,
                stream);
  });
}

}  // namespace sherd::on_cuda
