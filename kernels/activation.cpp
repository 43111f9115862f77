#include "kernels/activation.h"

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/fast_math.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

// GELU has no tanh: (1 + tanh(u)) / 2 is sigmoid(2u), which also keeps the lower tail accurate.
constexpr float kGeluCubic = 0.044715f;
constexpr float kTwoSqrtTwoOverPi = 1.5957691216f;
constexpr float kNormalDensityAtZero = 0.3989422804f;

struct Relu {
  static float value(float x) { return x < 0.0f ? 0.0f : x; }
  static float slope(float x) { return x > 0.0f ? 1.0f : x <= 0.0f ? 0.0f : x; }
};

struct Silu {
  static float value(float x) { return x * fast_sigmoid(x); }
  static float slope(float x) {
    const SigmoidPair s = fast_sigmoid_pair(x);
    return s.value * (1.0f + x * s.complement);
  }
};

struct GeluTanh {
  static float gate(float x) { return kTwoSqrtTwoOverPi * (x + kGeluCubic * x * x * x); }
  static float value(float x) { return x * fast_sigmoid(gate(x)); }
  static float slope(float x) {
    const SigmoidPair s = fast_sigmoid_pair(gate(x));
    const float gate_slope = kTwoSqrtTwoOverPi * (1.0f + 3.0f * kGeluCubic * x * x);
    return s.value + x * gate_slope * (s.value * s.complement);
  }
};

struct GeluErf {
  static float value(float x) { return x * fast_normal_cdf(x, fast_gaussian(x)); }
  static float slope(float x) {
    const float gaussian = fast_gaussian(x);
    return fast_normal_cdf(x, gaussian) + x * (kNormalDensityAtZero * gaussian);
  }
};

struct Tanh {
  static float value(float x) { return fast_tanh(x); }
  static float slope(float x) {
    const SigmoidPair s = fast_sigmoid_pair(2.0f * x);
    return 4.0f * (s.value * s.complement);
  }
};

/// Calls `f.template operator()<F>()` with the function of `kind`.
template <class F>
void with_activation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::relu:
      return f.template operator()<Relu>();
    case Activation::gelu_tanh:
      return f.template operator()<GeluTanh>();
    case Activation::gelu_erf:
      return f.template operator()<GeluErf>();
    case Activation::silu:
      return f.template operator()<Silu>();
    case Activation::tanh:
      return f.template operator()<Tanh>();
  }
}

template <class F, class T>
void run_forward(const T* x, T* y, std::int64_t numel) {
  for_blocks(numel, [=](std::int64_t first, std::int64_t last) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) {
      y[i] = static_cast<T>(F::value(static_cast<float>(x[i])));
    }
  });
}

/// kRemakes: y is written too.
template <bool kRemakes, class F, class T>
void run_backward(const T* dy, const T* x, T* y, T* dx, std::int64_t numel) {
  for_blocks(numel, [=](std::int64_t first, std::int64_t last) {
#pragma omp simd
    for (std::int64_t i = first; i < last; ++i) {
      const auto at = static_cast<float>(x[i]);
      const auto d = static_cast<float>(dy[i]);
      if constexpr (kRemakes) y[i] = static_cast<T>(F::value(at));
      dx[i] = static_cast<T>(d * F::slope(at));
    }
  });
}

}  // namespace

void activation_forward(const Tensor& x, const Tensor& y, Activation kind, Stream& stream) {
  const OperandCheck check("activation_forward", stream);
  check.is_float(x, "x");
  check.is(y, "y", x.dtype(), x.shape());
  if (!stream.device().is_cpu()) return on_cuda::activation_forward(x, y, kind, stream);
  const std::int64_t numel = x.numel();
  with_float(x.dtype(), [&]<class T>() {
    with_activation(kind, [&]<class F>() {
      enqueue(stream, [=, from = x.as<T>(), to = y.as<T>()] { run_forward<F>(from, to, numel); });
    });
  });
}

void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& dx,
                         Activation kind, Stream& stream) {
  const OperandCheck check("activation_backward", stream);
  check.is_float(x, "x");
  check.is(dy, "dy", x.dtype(), x.shape());
  if (y.defined()) check.is(y, "y", x.dtype(), x.shape());
  check.is(dx, "dx", x.dtype(), x.shape());
  if (!stream.device().is_cpu()) return on_cuda::activation_backward(dy, x, y, dx, kind, stream);
  const std::int64_t numel = x.numel();
  with_float(x.dtype(), [&]<class T>() {
    with_activation(kind, [&]<class F>() {
      enqueue(stream, [=, up = dy.as<T>(), at = x.as<T>(), again = static_cast<T*>(y.data()),
                       to = dx.as<T>()] {
        again == nullptr ? run_backward<false, F>(up, at, again, to, numel)
                         : run_backward<true, F>(up, at, again, to, numel);
      });
    });
  });
}

}  // namespace sherd
