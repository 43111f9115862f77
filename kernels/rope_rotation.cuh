#pragma once

#include "kernels/launch.cuh"
#include "kernels/rope_frequency.h"

namespace sherd {

/// How many samples and positions there are to rotate, and which way.
struct RopeShape {
  RopeShape(const Tensor& packed, RopeDirection direction)
      : samples(packed.dim(0)),
        positions(packed.dim(1)),
        sign(direction == RopeDirection::forward ? 1.0 : -1.0) {}
  std::int64_t samples, positions;
  double sign;
};

/// Cosines and sines of `count` pairs of heads of `width`, from `first` on, at one position; made
/// by all threads of a block.
__device__ inline void make_rotation(float* cosine, float* sine, std::int64_t first, int count,
                                     std::int64_t width, std::int64_t position,
                                     const RopeSpec& spec, double sign) {
  const auto threads = static_cast<int>(blockDim.x * blockDim.y);
  for (auto i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < count; i += threads) {
    const double angle = pair_frequency(first + i, width, spec) * static_cast<double>(position);
    double s = 0.0;
    double c = 0.0;
    sincos(angle, &s, &c);
    cosine[i] = static_cast<float>(c);
    sine[i] = static_cast<float>(sign * s);
  }
}

/// A pair after its rotation.
struct Rotated {
  float first, second;
};
__device__ inline Rotated rotate(float x, float y, float cosine, float sine) {
  return {x * cosine - y * sine, y * cosine + x * sine};
}

}  // namespace sherd
