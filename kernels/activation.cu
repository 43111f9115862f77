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

template <class T, class Function>
struct Forward {
  __device__ T operator()(T, T x) const { return from_float<T>(Function::value(to_float(x))); }
};
template <class T, class Function>
struct Backward {
  __device__ T operator()(T, T dy, T x) const {
    return from_float<T>(to_float(dy) * Function::slope(to_float(x)));
  }
};

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

void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Activation kind,
                         Stream& stream) {
  with_activation(x.dtype(), kind, [&]<class T, class Function>() {
    map("activation_backward", x.numel(), stream, Backward<T, Function>{}, elements<T>(dx),
        elements<const T>(dy), elements<const T>(x));
  });
}

}  // namespace sherd::on_cuda
