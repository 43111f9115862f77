#include "kernels/rms_norm.h"

#include "kernels/cuda_kernels.h"
#include "kernels/norm_sums.cuh"
#include "kernels/rms_rows.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct ForwardOperands {
  const T *x, *weight;
  T* y;
  float* rstd;
  std::int64_t rows, width;
  float epsilon;
};

template <int V, class T>
__global__ void forward_kernel(ForwardOperands<T> o) {
  const std::int64_t row = row_of_thread();
  const bool is_there = row < o.rows;
  const float rstd = rms_row_forward<V, T>(o.x + row * o.width, o.weight, o.y + row * o.width,
                                           nullptr, is_there ? o.width : 0, o.width, o.epsilon);
  if (is_there && threadIdx.x == 0) o.rstd[row] = rstd;
}

template <class T>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float* rstd;
  T* dx;
  Accumulate accumulate;
  std::int64_t rows, width;
};

template <int V, class T>
__global__ void __launch_bounds__(kMostNormThreads, 2)
    backward_kernel(BackwardOperands<T> o, NormSums<1> sums) {
  extern __shared__ float shared_sums[];
  float* dweight = sums.begin<V>(shared_sums);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = row_of_thread(); row - threadIdx.y < o.rows; row += stride) {
    const bool is_there = row < o.rows;
    const std::int64_t at = row * o.width;
    rms_row_backward<V>(o.dy + at, o.x + at, o.weight, is_there ? o.rstd[row] : 0.0f, o.dx + at,
                        o.accumulate, dweight, is_there ? o.width : 0, o.width);
  }
  sums.end(shared_sums);
}

}  // namespace

void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream) {
  const std::int64_t width = weight.numel();
  if (x.numel() == 0) return;
  with_device_float(x.dtype(), [&]<class T>() {
    const ForwardOperands<T> o{elements<const T>(x),
                               elements<const T>(weight),
                               elements<T>(y),
                               rstd.as<float>(),
                               x.numel() / width,
                               width,
                               epsilon};
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(width, V, 4);
      forward_kernel<V><<<threads.blocks_for_rows(o.rows), threads.block(), 0, cuda(stream)>>>(o);
      check_launch("rms_norm_forward");
    };
    with_row_pack<T>(width, launch, o.x, o.weight, o.y);
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& dx, Accumulate dx_accumulate, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream) {
  constexpr const char* kName = "rms_norm_backward";
  const std::int64_t width = weight.numel();
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  with_device_sums(x.dtype(), dweight.dtype(), [&]<class T, class G>() {
    const BackwardOperands<T> o{elements<const T>(dy),
                                elements<const T>(x),
                                elements<const T>(weight),
                                rstd.as<float>(),
                                elements<T>(dx),
                                dx_accumulate,
                                rows,
                                width};
    const auto launch = [&]<int V>() {
      const NormBackward<1> call(kName, rows, width, V, stream);
      if (rows > 0) {
        allow_shared(backward_kernel<V, T>, call.shared_bytes());
        backward_kernel<V><<<static_cast<unsigned>(call.blocks), call.threads.block(),
                             call.shared_bytes(), cuda(stream)>>>(o, call.sums);
        check_launch(kName);
      }
      call.finish(kName, V, weight_accumulate, elements<G>(dweight), static_cast<G*>(nullptr),
                  stream);
    };
    with_row_pack<T>(width, launch, o.dy, o.x, o.weight, o.dx);
  });
}

}  // namespace sherd::on_cuda
