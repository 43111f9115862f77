#pragma once

#include "kernels/accumulate.h"
#include "kernels/rows.cuh"

// One row of RMS norm, shared by the norm of rows and the norm of heads. `mine` is the width, or 0
// for a thread whose row is not there and which only helps to sum.

namespace sherd {

/// y = x * rstd * weight; returns rstd. y may alias x; what x was goes to `saved` unless null.
template <int V, class T>
__device__ inline float rms_row_forward(const T* x, const T* weight, T* y, T* saved,
                                        std::int64_t mine, std::int64_t width, float epsilon) {
  float squares = 0.0f;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto p = load_pack<V>(x + c);
#pragma unroll
    for (int i = 0; i < V; ++i) squares += to_float(p.v[i]) * to_float(p.v[i]);
  });
  const float rstd = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(width) + epsilon);
  for_columns<V>(mine, [&](std::int64_t c) {
    auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(weight + c);
    if (saved != nullptr) store_pack(saved + c, p);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      p.v[i] = from_float<T>(to_float(p.v[i]) * rstd * to_float(w.v[i]));
    }
    store_pack(y + c, p);
  });
  return rstd;
}

/// dx of rms_row_forward, written or added; dx may alias dy when written. Adds the row's gradient
/// of the weight to `dweight`, laid out as NormSums has it.
template <int V, class T>
__device__ inline void rms_row_backward(const T* dy, const T* x, const T* weight, float rstd, T* dx,
                                        Accumulate accumulate, float* dweight, std::int64_t mine,
                                        std::int64_t width) {
  float sum = 0.0f;
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto d = load_pack<V>(dy + c);
    const auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(weight + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      sum += to_float(d.v[i]) * to_float(w.v[i]) * (to_float(p.v[i]) * rstd);
    }
  });
  const float mean = row_sum(sum) / static_cast<float>(width);
  for_columns<V>(mine, [&](std::int64_t c) {
    const auto d = load_pack<V>(dy + c);
    const auto p = load_pack<V>(x + c);
    const auto w = load_pack<V>(weight + c);
    Pack<T, V> out{};
    if (accumulate == Accumulate::yes) out = load_pack<V>(dx + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float normal = to_float(p.v[i]) * rstd;
      const float gradient = rstd * (to_float(d.v[i]) * to_float(w.v[i]) - normal * mean);
      out.v[i] = from_float<T>(to_float(out.v[i]) + gradient);
      dweight[i * (width / V) + c / V] += to_float(d.v[i]) * normal;
    }
    store_pack(dx + c, out);
  });
}

}  // namespace sherd
