#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/host_device.h"
#include "kernels/rope.h"

namespace sherd {

/// Llama 3.1: low frequencies are divided by `factor`, high ones kept, those between blended.
SHERD_HOST_DEVICE inline double llama3_frequency(double frequency, const RopeSpec& spec) {
  const double turns = spec.original_max_positions * frequency / (2.0 * std::numbers::pi);
  if (turns < spec.low_frequency_factor) return frequency / spec.factor;
  if (turns > spec.high_frequency_factor) return frequency;
  const double kept = (turns - spec.low_frequency_factor) /
                      (spec.high_frequency_factor - spec.low_frequency_factor);
  return (1.0 - kept) * frequency / spec.factor + kept * frequency;
}

/// Radians per position of pair `pair` of heads of `width`.
SHERD_HOST_DEVICE inline double pair_frequency(std::int64_t pair, std::int64_t width,
                                               const RopeSpec& spec) {
  const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(width);
  const double frequency = std::pow(spec.theta, -exponent);
  switch (spec.scaling) {
    case RopeSpec::Scaling::none:
      return frequency;
    case RopeSpec::Scaling::linear:
      return frequency / spec.factor;
    case RopeSpec::Scaling::llama3:
      return llama3_frequency(frequency, spec);
  }
  return frequency;
}

}  // namespace sherd
