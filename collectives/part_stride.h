#pragma once

#include <cstdint>

namespace sherd {

/// Elements from one part to the next, so that kernels read packs of 16 bytes.
constexpr std::int64_t part_stride(std::int64_t numel) { return (numel + 7) / 8 * 8; }

}  // namespace sherd
