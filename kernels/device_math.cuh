#pragma once

#include <type_traits>

#include "kernels/launch.cuh"

// Elementary functions in the precision that a result of type T has: within a few ulp of f32, or by
// the special function units for 16-bit types.

namespace sherd {

template <class T>
__device__ inline float exp_for(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return expf(x);
  } else {
    return __expf(x);
  }
}

template <class T>
__device__ inline float inverse_for(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return 1.0f / x;
  } else {
    return __fdividef(1.0f, x);
  }
}

/// 1 / (1 + e^-x) and one minus it, each with its relative accuracy.
struct Sigmoid {
  float value, complement;
};
template <class T>
__device__ inline Sigmoid sigmoid_for(float x) {
  const float e = exp_for<T>(-x);
  const float value = inverse_for<T>(1.0f + e);
  return {value, x < 0.0f ? 1.0f - value : e * value};
}

}  // namespace sherd
