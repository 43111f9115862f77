#include "kernels/column_sums.cuh"
#include "kernels/cuda_kernels.h"
#include "kernels/row_pack.cuh"

namespace sherd::on_cuda {
namespace {

/// One block a row.
template <int V, class T>
__global__ void forward_kernel(const T* x, const T* weight, T* y, float* rstd, std::int64_t width,
                               float epsilon) {
  const std::int64_t row = blockIdx.x;
  const T* from = x + row * width;
  float squares = 0.0f;
  for_row<V>(from, width, threadIdx.x, blockDim.x, [&](std::int64_t, const Pack<T, V>& p) {
#pragma unroll
    for (int i = 0; i < V; ++i) squares += to_float(p.v[i]) * to_float(p.v[i]);
  });
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(width) + epsilon);
  if (threadIdx.x == 0) rstd[row] = scale;
  T* to = y + row * width;
  for_row<V>(from, width, threadIdx.x, blockDim.x, [&](std::int64_t c, const Pack<T, V>& p) {
    const auto w = *reinterpret_cast<const Pack<T, V>*>(weight + c);
    Pack<T, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      out.v[i] = from_float<T>(to_float(p.v[i]) * scale * to_float(w.v[i]));
    }
    *reinterpret_cast<Pack<T, V>*>(to + c) = out;
  });
}

/// dx = rstd * (g - x * rstd² * mean(g * x)), g = dy * weight.
template <int V, class T>
__global__ void backward_kernel(const T* dy, const T* x, const T* weight, const float* rstd, T* dx,
                                std::int64_t width, Accumulate accumulate) {
  const std::int64_t row = blockIdx.x;
  const T* up = dy + row * width;
  const T* at = x + row * width;
  T* to = dx + row * width;
  float dot = 0.0f;
  for_row<V>(up, width, threadIdx.x, blockDim.x, [&](std::int64_t c, const Pack<T, V>& g) {
    const auto v = *reinterpret_cast<const Pack<T, V>*>(at + c);
    const auto w = *reinterpret_cast<const Pack<T, V>*>(weight + c);
#pragma unroll
    for (int i = 0; i < V; ++i) dot += to_float(g.v[i]) * to_float(w.v[i]) * to_float(v.v[i]);
  });
  const float scale = rstd[row];
  const float mean = block_sum(dot) / static_cast<float>(width) * scale * scale;
  for_row<V>(up, width, threadIdx.x, blockDim.x, [&](std::int64_t c, const Pack<T, V>& g) {
    const auto v = *reinterpret_cast<const Pack<T, V>*>(at + c);
    const auto w = *reinterpret_cast<const Pack<T, V>*>(weight + c);
    auto out = *reinterpret_cast<Pack<T, V>*>(to + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float d = scale * (to_float(g.v[i]) * to_float(w.v[i]) - to_float(v.v[i]) * mean);
      out.v[i] =
          from_float<T>(accumulate == Accumulate::yes ? to_float(out.v[i]) + d : d);
    }
    *reinterpret_cast<Pack<T, V>*>(to + c) = out;
  });
}

template <class T>
struct WeightGradient {
  const T* dy;
  const T* x;
  const float* rstd;
  std::int64_t width;
  __device__ void operator()(std::int64_t r, std::int64_t c, float* sums) const {
    sums[0] += to_float(dy[r * width + c]) * (to_float(x[r * width + c]) * rstd[r]);
  }
};

}  // namespace

void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream) {
  if (x.numel() == 0) return;
  const std::int64_t width = x.dim(-1);
  const auto rows = static_cast<unsigned>(x.numel() / width);
  with_device_float(x.dtype(), [&]<class T>() {
    const auto launch = [&]<int V>() {
      forward_kernel<V><<<rows, threads_for_row(width, V), 0, cuda(stream)>>>(
          elements<const T>(x), elements<const T>(weight), elements<T>(y), rstd.as<float>(), width,
          epsilon);
      check_launch("rms_norm_forward");
    };
    const bool packed = rows_pack<T>(width, elements<T>(x), elements<T>(weight), elements<T>(y));
    packed ? launch.template operator()<kPack<T>>() : launch.template operator()<1>();
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& dx, Accumulate dx_accumulate, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream) {
  const std::int64_t width = x.dim(-1);
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  with_device_float(x.dtype(), [&]<class T>() {
    with_device_float(dweight.dtype(), [&]<class G>() {
      const WeightGradient<T> gradient{elements<const T>(dy), elements<const T>(x),
                                       rstd.as<float>(), width};
      column_sums<1, G>("rms_norm_backward", rows, width, weight_accumulate,
                        Pack<G*, 1>{{elements<G>(dweight)}}, stream, gradient);
    });
    if (rows == 0) return;
    const auto launch = [&]<int V>() {
      backward_kernel<V><<<static_cast<unsigned>(rows), threads_for_row(width, V), 0,
                           cuda(stream)>>>(elements<const T>(dy), elements<const T>(x),
                                           elements<const T>(weight), rstd.as<float>(),
                                           elements<T>(dx), width, dx_accumulate);
      check_launch("rms_norm_backward");
    };
    const bool packed = rows_pack<T>(width, elements<T>(dy), elements<T>(x), elements<T>(weight),
                                     elements<T>(dx));
    packed ? launch.template operator()<kPack<T>>() : launch.template operator()<1>();
  });
}

}  // namespace sherd::on_cuda
