#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace sherd {

/// Uniform in [-1, 1), of element `index`: a few operations, so that filling runs at the speed of
/// memory. For measurements only; core/rng.h has the numbers that training draws.
SHERD_HOST_DEVICE inline float random_word(std::int64_t index) {
  constexpr float kScale = 1.0f / 2147483648.0f;
  std::uint32_t bits = static_cast<std::uint32_t>(index) * 0x9e3779b9u + 1u;
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
  return static_cast<float>(static_cast<std::int32_t>(bits ^ (bits >> 16))) * kScale;
}

}  // namespace sherd
