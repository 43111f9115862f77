#include "kernels/layer_norm.h"

#include "kernels/cuda_kernels.h"
#include "kernels/norm_sums.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct ForwardOperands {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
  std::int64_t rows, width;
  float epsilon;
};

/// The variance is that of what is left without the mean, so that a large mean costs no precision.
template <int V, class T>
__global__ void forward_kernel(ForwardOperands<T> o) {
  const std::int64_t row = row_of_thread();
  const std::int64_t mine = row < o.rows ? o.width : 0;
  const T* x = o.x + row * o.width;
  const auto width = static_cast<float>(o.width);
  float sum = 0.0f;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto p = load_pack<V>(x + c);
#pragma unroll
    for (int i = 0; i < V; ++i) sum += to_float(p.v[i]);
  });
  const float mean = row_sum(sum) / width;
  float squares = 0.0f;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto p = load_pack<V>(x + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float centred = to_float(p.v[i]) - mean;
      squares += centred * centred;
    }
  });
  const float rstd = 1.0f / sqrtf(row_sum(squares) / width + o.epsilon);
  T* y = o.y + row * o.width;
  for_columns<V>(mine, [&](std::int64_t c) {
    auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(o.weight + c);
    const auto b = load_pack<V>(o.bias + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float normal = (to_float(p.v[i]) - mean) * rstd;
      p.v[i] = from_float<T>(normal * to_float(w.v[i]) + to_float(b.v[i]));
    }
    store_pack(y + c, p);
  });
  if (mine == 0 || threadIdx.x != 0) return;
  o.mean[row] = mean;
  o.rstd[row] = rstd;
}

template <class T>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  T* dx;
  Accumulate accumulate;
  std::int64_t rows, width;
};

/// One row; its gradients of weight and bias are added to `sums`, laid out as NormSums has it.
template <int V, class T>
__device__ void backward_row(const BackwardOperands<T>& o, std::int64_t row, float* sums) {
  const std::int64_t mine = row < o.rows ? o.width : 0;
  const float mean = mine > 0 ? o.mean[row] : 0.0f;
  const float rstd = mine > 0 ? o.rstd[row] : 0.0f;
  const T* dy = o.dy + row * o.width;
  const T* x = o.x + row * o.width;
  T* dx = o.dx + row * o.width;
  float sum = 0.0f;
  float sum_normal = 0.0f;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto d = load_pack<V>(dy + c);
    const auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(o.weight + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float slope = to_float(d.v[i]) * to_float(w.v[i]);
      sum += slope;
      sum_normal += slope * ((to_float(p.v[i]) - mean) * rstd);
    }
  });
  const auto width = static_cast<float>(o.width);
  const float mean_slope = row_sum(sum) / width;
  const float mean_normal = row_sum(sum_normal) / width;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto d = load_pack<V>(dy + c);
    const auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(o.weight + c);
    Pack<T, V> out{};
    if (o.accumulate == Accumulate::yes) out = load_pack<V>(dx + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float normal = (to_float(p.v[i]) - mean) * rstd;
      const float slope = to_float(d.v[i]) * to_float(w.v[i]);
      const float gradient = rstd * (slope - mean_slope - normal * mean_normal);
      out.v[i] = from_float<T>(to_float(out.v[i]) + gradient);
      const std::int64_t at = i * (o.width / V) + c / V;
      sums[at] += to_float(d.v[i]) * normal;
      sums[at + o.width] += to_float(d.v[i]);
    }
    store_pack(dx + c, out);
  });
}

template <int V, class T>
__global__ void __launch_bounds__(kMostNormThreads, 2)
    backward_kernel(BackwardOperands<T> o, NormSums<2> sums) {
  extern __shared__ float shared_sums[];
  float* gradients = sums.begin<V>(shared_sums);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = row_of_thread(); row - threadIdx.y < o.rows; row += stride) {
    backward_row<V>(o, row, gradients);
  }
  sums.end(shared_sums);
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream) {
  const std::int64_t width = weight.numel();
  if (x.numel() == 0) return;
  with_device_float(x.dtype(), [&]<class T>() {
    const ForwardOperands<T> o{elements<const T>(x),
                               elements<const T>(weight),
                               elements<const T>(bias),
                               elements<T>(y),
                               mean.as<float>(),
                               rstd.as<float>(),
                               x.numel() / width,
                               width,
                               epsilon};
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(width, V, 4);
      forward_kernel<V><<<threads.blocks_for_rows(o.rows), threads.block(), 0, cuda(stream)>>>(o);
      check_launch("layer_norm_forward");
    };
    with_row_pack<T>(width, launch, o.x, o.weight, o.bias, o.y);
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                         Accumulate dx_accumulate, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream) {
  constexpr const char* kName = "layer_norm_backward";
  const std::int64_t width = weight.numel();
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  with_device_sums(x.dtype(), dweight.dtype(), [&]<class T, class G>() {
    const BackwardOperands<T> o{elements<const T>(dy),
                                elements<const T>(x),
                                elements<const T>(weight),
                                mean.as<float>(),
                                rstd.as<float>(),
                                elements<T>(dx),
                                dx_accumulate,
                                rows,
                                width};
    const auto launch = [&]<int V>() {
      const NormBackward<2> call(kName, rows, width, V, stream);
      if (rows > 0) {
        allow_shared(backward_kernel<V, T>, call.shared_bytes());
        backward_kernel<V><<<static_cast<unsigned>(call.blocks), call.threads.block(),
                             call.shared_bytes(), cuda(stream)>>>(o, call.sums);
        check_launch(kName);
      }
      call.finish(kName, V, weight_accumulate, elements<G>(dweight), elements<G>(dbias), stream);
    };
    with_row_pack<T>(width, launch, o.dy, o.x, o.weight, o.dx);
  });
}

}  // namespace sherd::on_cuda
