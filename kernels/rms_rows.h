#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/accumulate.h"

namespace sherd {

// One row of RMS norm, shared by the norm of rows and the norm of heads.

/// y = x * rstd * weight over `width` values; returns rstd. y may alias x.
template <class T>
float rms_row_forward(const T* x, const T* weight, T* y, std::int64_t width, float epsilon) {
  double squares = 0.0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) {
    const double value = static_cast<float>(x[c]);
    squares += value * value;
  }
  const auto rstd =
      static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon));
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    y[c] = static_cast<T>(static_cast<float>(x[c]) * rstd * static_cast<float>(weight[c]));
  }
  return rstd;
}

/// dx of rms_row_forward, written or added; dx may alias dy when written.
template <class T>
void rms_row_backward(const T* dy, const T* x, const T* weight, float rstd, T* dx,
                      std::int64_t width, Accumulate accumulate) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    sum += d * (static_cast<float>(x[c]) * rstd);
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(width));
  const bool add = accumulate == Accumulate::yes;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    const float normal = static_cast<float>(x[c]) * rstd;
    const float before = add ? static_cast<float>(dx[c]) : 0.0f;
    dx[c] = static_cast<T>(before + rstd * (d - normal * mean));
  }
}

}  // namespace sherd
