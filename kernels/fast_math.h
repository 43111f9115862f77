#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace sherd {

// Elementary functions for the inner loops of kernels: branch-free, so that `omp simd` makes vector
// code of them, and built from exactly rounded operations only, so that an element has the same
// bits in a vector and in the remainder of a loop. Polynomials are minimax fits (Remez).

/// e^x within 2 ulp; 0 below -86.9 (no subnormal results), infinity above 88.73, NaN for NaN.
[[gnu::always_inline]] inline float fast_exp(float x) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  constexpr float kRound = 0x1.8p+23f;  // adding it leaves the nearest integer in the low bits
  constexpr float kLargest = 89.0f, kSmallest = -86.9f;
  const float clamped = x > kLargest ? kLargest : x;
  const float shifted = std::fma(clamped, kLog2e, kRound);
  const float n = shifted - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, clamped));
  float q = 0x1.6a2352p-10f;
  q = std::fma(q, r, 0x1.123a6cp-7f);
  q = std::fma(q, r, 0x1.5558f4p-5f);
  q = std::fma(q, r, 0x1.55549p-3f);
  q = std::fma(q, r, 0x1.fffffcp-2f);
  const float p = 1.0f + std::fma(r * r, q, r);
  // 2^(n-1), then twice that: 2^128 is not a float, but results just below it are.
  const std::uint32_t half_power = (std::bit_cast<std::uint32_t>(shifted) + 126u) << 23;
  const float y = p * std::bit_cast<float>(half_power) * 2.0f;
  return x < kSmallest ? 0.0f : y;
}

/// 1 / (1 + e^-x) within 3 ulp.
[[gnu::always_inline]] inline float fast_sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

/// fast_sigmoid(x) and one minus it, each with its relative accuracy.
struct SigmoidPair {
  float value;
  float complement;
};
[[gnu::always_inline]] inline SigmoidPair fast_sigmoid_pair(float x) {
  const float e = fast_exp(-x);
  const float value = 1.0f / (1.0f + e);
  return {value, x < 0.0f ? 1.0f - value : e * value};
}

/// tanh x within 5 ulp: the series near zero, where the quotient would cancel.
[[gnu::always_inline]] inline float fast_tanh(float x) {
  constexpr float kNear = 0.25f;
  const float square = x * x;
  float q = 62.0f / 2835.0f;
  q = std::fma(q, square, -17.0f / 315.0f);
  q = std::fma(q, square, 2.0f / 15.0f);
  q = std::fma(q, square, -1.0f / 3.0f);
  const float series = std::fma(x * square, q, x);
  const float e = fast_exp(-2.0f * std::fabs(x));
  const float quotient = std::copysign((1.0f - e) / (1.0f + e), x);
  return std::fabs(x) < kNear ? series : quotient;
}

/// e^(-x²/2), what the normal density and distribution share.
[[gnu::always_inline]] inline float fast_gaussian(float x) { return fast_exp(-0.5f * x * x); }

/// The standard normal distribution function at x, given gaussian = fast_gaussian(x): a fit of
/// Mills' ratio in 1 / (1 + 0.35 |x|), so that the lower tail keeps its relative accuracy.
[[gnu::always_inline]] SHERD_HOST_DEVICE inline float fast_normal_cdf(float x, float gaussian) {
  const float t = 1.0f / std::fma(0.35f, std::fabs(x), 1.0f);
  float q = -0.02912587115f;
  q = std::fma(q, t, 0.1438722625f);
  q = std::fma(q, t, -0.255504618f);
  q = std::fma(q, t, 0.1589293497f);
  q = std::fma(q, t, -0.02293717791f);
  q = std::fma(q, t, 0.1054329533f);
  q = std::fma(q, t, 0.1198524331f);
  q = std::fma(q, t, 0.1398590829f);
  q = std::fma(q, t, 0.1396215698f);
  const float tail = gaussian * (q * t);
  return x > 0.0f ? 1.0f - tail : tail;
}

}  // namespace sherd
