#pragma once

#include <cmath>
#include <cstdint>

namespace sherd {

// One row of layer norm (kCentred), or of RMS norm, which has neither mean nor bias; shared by the
// norms of rows and of heads.

struct NormStatistic {
  float mean = 0.0f;
  float rstd = 0.0f;
};

/// y = (x - mean) * rstd * weight + bias over `width` values. y may alias x.
template <bool kCentred, class T>
NormStatistic norm_row_forward(const T* x, const T* weight, const T* bias, T* y, std::int64_t width,
                               float epsilon) {
  double mean = 0.0;
  if constexpr (kCentred) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < width; ++c) sum += static_cast<float>(x[c]);
    mean = sum / static_cast<double>(width);
  }
  double squares = 0.0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) {
    const double centred = static_cast<float>(x[c]) - mean;
    squares += centred * centred;
  }
  const double variance = squares / static_cast<double>(width);
  const auto m = static_cast<float>(mean);
  const auto rstd = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    float value = (static_cast<float>(x[c]) - m) * rstd * static_cast<float>(weight[c]);
    if constexpr (kCentred) value += static_cast<float>(bias[c]);
    y[c] = static_cast<T>(value);
  }
  return {m, rstd};
}

/// dx of norm_row_forward, plus `residual` unless null; dx may alias dy or the residual.
template <bool kCentred, class T>
void norm_row_backward(const T* dy, const T* x, const T* weight, NormStatistic statistic,
                       const T* residual, T* dx, std::int64_t width) {
  const float mean = statistic.mean;
  const float rstd = statistic.rstd;
  double sum = 0.0;
  double sum_normal = 0.0;
#pragma omp simd reduction(+ : sum, sum_normal)
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    if constexpr (kCentred) sum += d;
    sum_normal += d * ((static_cast<float>(x[c]) - mean) * rstd);
  }
  const auto mean_d = static_cast<float>(sum / static_cast<double>(width));
  const auto mean_d_normal = static_cast<float>(sum_normal / static_cast<double>(width));
  const bool add = residual != nullptr;
  const T* before = add ? residual : dy;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    const float normal = (static_cast<float>(x[c]) - mean) * rstd;
    const float start = add ? static_cast<float>(before[c]) : 0.0f;
    dx[c] = static_cast<T>(start + rstd * (d - mean_d - normal * mean_d_normal));
  }
}

}  // namespace sherd
