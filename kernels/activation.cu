#include "kernels/activation.h"

#include "kernels/cuda_kernels.h"
#include "kernels/device_math.cuh"
#include "kernels/fast_math.h"
#include "kernels/map.cuh"

namespace sherd::on_cuda {
namespace {

// The formulas of kernels/activation.cpp.
constexpr float kGeluCubic = 0.044715f;
constexpr float kTwoSqrtTwoOverPi = 1.5957691216f;
constexpr float kNormalDensityAtZero = 0.3989422804f;

template <class T>
struct Relu {
  static __device__ float value(float x) { return x < 0.0f ? 0.0f : x; }
  static __device__ float slope(float x) { return x > 0.0f ? 1.0f : x <= 0.0f ? 0.0f : x; }
};

template <class T>
struct Silu {
  static __device__ float value(float x) { return x * sigmoid_for<T>(x).value; }
  static __device__ float slope(float x) {
    const Sigmoid s = sigmoid_for<T>(x);
    return s.value * (1.0f + x * s.complement);
  }
};

template <class T>
struct GeluTanh {
  static __device__ float gate(float x) { return kTwoSqrtTwoOverPi * (x + kGeluCubic * x * x * x); }
  static __device__ float value(float x) { return x * sigmoid_for<T>(gate(x)).value; }
  static __device__ float slope(float x) {
    const Sigmoid s = sigmoid_for<T>(gate(x));
    const float gate_slope = kTwoSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * x * x);
    return s.value + x * gate_slope * (s.value * s.complement);
  }
};

template <class T>
struct GeluErf {
  static __device__ float gaussian(float x) { return exp_for<T>(-0.5f * x * x); }
  static __device__ float value(float x) { return x * fast_normal_cdf(x, gaussian(x)); }
  static __device__ float slope(float x) {
    const float g = gaussian(x);
    return fast_normal_cdf(x, g) + x * (kNormalDensityAtZero * g);
  }
};

template <class T>
struct Tanh {
  static __device__ float value(float x) { return tanhf(x); }
  static __device__ float slope(float x) {
    const Sigmoid s = sigmoid_for<T>(2.0f * x);
    return 4.0f * (s.value * s.complement);
  }
};

template <class T, class Function>
struct Forward {
  __device__ T operator()(T, T x) const { return from_float<T>(Function::value(to_float(x))); }
};

/// V elements a thread and turn, and what is left one by one. y may be null.
template <int V, class Function, class T>
__global__ void backward_kernel(std::int64_t n, const T* dy, const T* x, T* y, T* dx) {
  const auto at_packs = [&]<int Width>(std::int64_t first, std::int64_t last) {
    for (std::int64_t p = first + thread_index(); p < last; p += thread_count()) {
      auto up = load_pack<Width>(dy + p * Width);
      auto at = load_pack<Width>(x + p * Width);
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        const float value = to_float(at.v[i]);
        at.v[i] = from_float<T>(to_float(up.v[i]) * Function::slope(value));
        up.v[i] = from_float<T>(Function::value(value));
      }
      if (y != nullptr) store_pack(y + p * Width, up);
      store_pack(dx + p * Width, at);
    }
  };
  at_packs.template operator()<V>(0, n / V);
  at_packs.template operator()<1>(n / V * V, n);
}

/// Calls f.operator()<T, Function>() with the device type and the function of `kind`.
template <class F>
void with_activation(DType dtype, Activation kind, F&& f) {
  with_device_float(dtype, [&]<class T>() {
    switch (kind) {
      case Activation::relu:
        return f.template operator()<T, Relu<T>>();
      case Activation::gelu_tanh:
        return f.template operator()<T, GeluTanh<T>>();
      case Activation::gelu_erf:
        return f.template operator()<T, GeluErf<T>>();
      case Activation::silu:
        return f.template operator()<T, Silu<T>>();
      case Activation::tanh:
        return f.template operator()<T, Tanh<T>>();
    }
  });
}

}  // namespace

void activation_forward(const Tensor& x, const Tensor& y, Activation kind, Stream& stream) {
  with_activation(x.dtype(), kind, [&]<class T, class Function>() {
    map("activation_forward", x.numel(), stream, Forward<T, Function>{}, elements<T>(y),
        elements<const T>(x));
  });
}

void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& dx,
                         Activation kind, Stream& stream) {
  const std::int64_t n = x.numel();
  if (n == 0) return;
  with_activation(x.dtype(), kind, [&]<class T, class Function>() {
    const bool packed = is_aligned(dy.data()) && is_aligned(x.data()) && is_aligned(y.data()) &&
                        is_aligned(dx.data());
    const auto launch = [&]<int V>() {
      backward_kernel<V, Function><<<blocks_for((n + V - 1) / V), kBlock, 0, cuda(stream)>>>(
          n, elements<const T>(dy), elements<const T>(x), elements<T>(y), elements<T>(dx));
      check_launch("activation_backward");
    };
    packed ? launch.template operator()<kPack<T>>() : launch.template operator()<1>();
  });
}

}  // namespace sherd::on_cuda
