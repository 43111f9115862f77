#pragma once

#include <algorithm>
#include <cstdint>

namespace sherd {

// How CUDA kernels cut sums over rows into parts, which are added in order: by the shape alone, so
// that the bits depend on nothing else, and plans know the scratch of the parts without a device.

/// Parts of a sum over the rows of a matrix, column by column; 1 needs no scratch.
inline std::int64_t column_strips(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kBlocks = 1024, kBlockColumns = 256, kFewestRows = 64, kMostStrips = 256;
  const std::int64_t across = (width + kBlockColumns - 1) / kBlockColumns;
  const std::int64_t along = std::min((rows + kFewestRows - 1) / kFewestRows, kMostStrips);
  return std::clamp<std::int64_t>(kBlocks / std::max<std::int64_t>(across, 1), 1,
                                  std::max<std::int64_t>(along, 1));
}

inline std::int64_t column_sums_bytes(std::int64_t rows, std::int64_t width) {
  const std::int64_t strips = column_strips(rows, width);
  return strips == 1 ? 0 : strips * width * static_cast<std::int64_t>(sizeof(float));
}

/// Blocks that share the rows of a norm's backward pass, each with its own sums of the gradients of
/// weights: two or four on each of the 132 multiprocessors of a large device.
inline std::int64_t norm_blocks(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kWide = 2048, kBlocks = 528, kWideBlocks = 264;
  return std::min(width > kWide ? kWideBlocks : kBlocks, rows);
}

/// Scratch for the sums of `sums` weights.
inline std::int64_t norm_sums_bytes(std::int64_t rows, std::int64_t width, int sums) {
  return norm_blocks(rows, width) * width * sums * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace sherd
