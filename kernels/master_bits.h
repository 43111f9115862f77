#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.h"

namespace sherd {

/// A bf16 value and what its f32 master has beyond it; their bits add up to the master's.
struct MasterBits {
  std::uint16_t value = 0;
  std::int16_t remainder = 0;
};

SHERD_HOST_DEVICE inline float join_master(MasterBits bits) {
  const std::uint32_t high = std::uint32_t{bits.value} << 16;
  return std::bit_cast<float>(high + static_cast<std::uint32_t>(std::int32_t{bits.remainder}));
}

SHERD_HOST_DEVICE inline MasterBits split_master(float master) {
  const auto bits = std::bit_cast<std::uint32_t>(master);
  return {static_cast<std::uint16_t>((bits + 0x8000u) >> 16),
          static_cast<std::int16_t>(bits & 0xffffu)};  // modulo 2^16: what is left over
}

}  // namespace sherd
