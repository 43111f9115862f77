#include "kernels/norm.h"

#include "kernels/cuda_kernels.h"
#include "kernels/held_rows.cuh"
#include "kernels/norm_sums.cuh"

namespace sherd::on_cuda {
namespace {

// kCentred tells layer norm from RMS norm, which has neither mean nor bias.

constexpr int kForwardTurns = 4;
constexpr int kBackwardTurns = 1;

template <class T>
struct ForwardOperands {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
  std::int64_t rows, width;
  float epsilon;
};

/// The variance is that of what is left without the mean, so that a large mean costs no precision.
template <bool kCentred, int V, class T>
__global__ void forward_kernel(ForwardOperands<T> o) {
  const std::int64_t row = row_of_thread();
  const std::int64_t mine = row < o.rows ? o.width : 0;
  const HeldRow<V, kForwardTurns, T> x(o.x + row * o.width, mine);
  const auto width = static_cast<float>(o.width);
  float mean = 0.0f;
  if constexpr (kCentred) {
    float sum = 0.0f;
    for_packs(
        [&](std::int64_t, const Pack<T, V>& p) {
#pragma unroll
          for (int i = 0; i < V; ++i) sum += to_float(p.v[i]);
        },
        x);
    mean = row_sum(sum) / width;
  }
  float squares = 0.0f;
  for_packs(
      [&](std::int64_t, const Pack<T, V>& p) {
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float centred = to_float(p.v[i]) - mean;
          squares += centred * centred;
        }
      },
      x);
  const float rstd = 1.0f / sqrtf(row_sum(squares) / width + o.epsilon);
  T* y = o.y + row * o.width;
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& p) {
        const auto w = load_pack<V>(o.weight + c);
        Pack<T, V> b{};
        if constexpr (kCentred) b = load_pack<V>(o.bias + c);
        Pack<T, V> out;
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float normal = (to_float(p.v[i]) - mean) * rstd;
          out.v[i] = from_float<T>(normal * to_float(w.v[i]) + to_float(b.v[i]));
        }
        store_pack(y + c, out);
      },
      x);
  if (mine == 0 || threadIdx.x != 0) return;
  if constexpr (kCentred) o.mean[row] = mean;
  o.rstd[row] = rstd;
}

template <class T>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  const T* residual;  ///< may be null
  T* dx;
  std::int64_t rows, width;
};

/// One row; its gradients of weight and bias are added to `sums`, laid out as NormSums has it.
template <bool kCentred, int V, class T>
__device__ void backward_row(const BackwardOperands<T>& o, std::int64_t row, float* sums) {
  const std::int64_t mine = row < o.rows ? o.width : 0;
  const std::int64_t at = row * o.width;
  const HeldRow<V, kBackwardTurns, T> dy(o.dy + at, mine), x(o.x + at, mine);
  const float mean = kCentred && mine > 0 ? o.mean[row] : 0.0f;
  const float rstd = mine > 0 ? o.rstd[row] : 0.0f;
  float sum = 0.0f;
  float sum_normal = 0.0f;
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& d, const Pack<T, V>& p) {
        const auto w = load_pack<V>(o.weight + c);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float slope = to_float(d.v[i]) * to_float(w.v[i]);
          if constexpr (kCentred) sum += slope;
          sum_normal += slope * ((to_float(p.v[i]) - mean) * rstd);
        }
      },
      dy, x);
  const auto width = static_cast<float>(o.width);
  const float mean_slope = kCentred ? row_sum(sum) / width : 0.0f;
  const float mean_normal = row_sum(sum_normal) / width;
  for_packs(
      [&](std::int64_t c, const Pack<T, V>& d, const Pack<T, V>& p) {
        const auto w = load_pack<V>(o.weight + c);
        Pack<T, V> out{};
        if (o.residual != nullptr) out = load_pack<V>(o.residual + at + c);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          const float normal = (to_float(p.v[i]) - mean) * rstd;
          const float slope = to_float(d.v[i]) * to_float(w.v[i]);
          const float gradient = rstd * (slope - mean_slope - normal * mean_normal);
          out.v[i] = from_float<T>(to_float(out.v[i]) + gradient);
          const std::int64_t sum_at = i * (o.width / V) + c / V;
          sums[sum_at] += to_float(d.v[i]) * normal;
          if constexpr (kCentred) sums[sum_at + o.width] += to_float(d.v[i]);
        }
        store_pack(o.dx + at + c, out);
      },
      dy, x);
}

template <bool kCentred>
using SumsOf = NormSums<kCentred ? 2 : 1>;

template <bool kCentred, int V, class T>
__global__ void __launch_bounds__(kMostNormThreads, 2)
    backward_kernel(BackwardOperands<T> o, SumsOf<kCentred> sums) {
  extern __shared__ float shared_sums[];
  float* gradients = sums.template begin<V>(shared_sums);
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.y;
  for (std::int64_t row = row_of_thread(); row - threadIdx.y < o.rows; row += stride) {
    backward_row<kCentred, V>(o, row, gradients);
  }
  sums.end(shared_sums);
}

template <bool kCentred, class T>
void run_forward(const char* name, const ForwardOperands<T>& o, Stream& stream) {
  if (o.rows == 0 || o.width == 0) return;
  const auto launch = [&]<int V>() {
    const RowThreads threads = threads_for_rows(o.width, V, kForwardTurns);
    forward_kernel<kCentred, V>
        <<<threads.blocks_for_rows(o.rows), threads.block(), 0, cuda(stream)>>>(o);
    check_launch(name);
  };
  with_row_pack<T>(o.width, launch, o.x, o.weight, o.bias, o.y);
}

template <bool kCentred, class T, class G>
void run_backward(const char* name, const BackwardOperands<T>& o, G* dweight, G* dbias,
                  Accumulate accumulate, Stream& stream) {
  const auto launch = [&]<int V>() {
    const NormBackward<kCentred ? 2 : 1> call(name, o.rows, o.width,
                                              threads_for_rows(o.width, V, kBackwardTurns), stream);
    if (o.rows > 0) {
      allow_shared(backward_kernel<kCentred, V, T>, call.shared_bytes());
      backward_kernel<kCentred, V><<<static_cast<unsigned>(call.blocks), call.threads.block(),
                                     call.shared_bytes(), cuda(stream)>>>(o, call.sums);
      check_launch(name);
    }
    call.finish(name, V, accumulate, dweight, dbias, stream);
  };
  with_row_pack<T>(o.width, launch, o.dy, o.x, o.weight, o.residual, o.dx);
}

std::int64_t rows_of_width(const Tensor& x, std::int64_t width) {
  return width == 0 ? 0 : x.numel() / width;
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream) {
  const std::int64_t width = weight.numel();
  with_device_float(x.dtype(), [&]<class T>() {
    run_forward<true>("layer_norm_forward",
                      ForwardOperands<T>{elements<const T>(x), elements<const T>(weight),
                                         elements<const T>(bias), elements<T>(y), mean.as<float>(),
                                         rstd.as<float>(), rows_of_width(x, width), width, epsilon},
                      stream);
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& residual,
                         const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream) {
  const std::int64_t width = weight.numel();
  with_device_sums(x.dtype(), dweight.dtype(), [&]<class T, class G>() {
    run_backward<true>(
        "layer_norm_backward",
        BackwardOperands<T>{elements<const T>(dy), elements<const T>(x), elements<const T>(weight),
                            mean.as<float>(), rstd.as<float>(), elements<const T>(residual),
                            elements<T>(dx), rows_of_width(x, width), width},
        elements<G>(dweight), elements<G>(dbias), weight_accumulate, stream);
  });
}

void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream) {
  const std::int64_t width = weight.numel();
  with_device_float(x.dtype(), [&]<class T>() {
    run_forward<false>(
        "rms_norm_forward",
        ForwardOperands<T>{elements<const T>(x), elements<const T>(weight), nullptr, elements<T>(y),
                           nullptr, rstd.as<float>(), rows_of_width(x, width), width, epsilon},
        stream);
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream) {
  const std::int64_t width = weight.numel();
  with_device_sums(x.dtype(), dweight.dtype(), [&]<class T, class G>() {
    run_backward<false>(
        "rms_norm_backward",
        BackwardOperands<T>{elements<const T>(dy), elements<const T>(x), elements<const T>(weight),
                            nullptr, rstd.as<float>(), elements<const T>(residual), elements<T>(dx),
                            rows_of_width(x, width), width},
        elements<G>(dweight), static_cast<G*>(nullptr), weight_accumulate, stream);
  });
}

}  // namespace sherd::on_cuda
