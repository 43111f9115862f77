#pragma once

#include "core/tensor.h"
#include "kernels/launch.cuh"

namespace sherd {

/// Heads [first, first + heads) of a packed tensor [B, T, slots, width], as rows ordered (token,
/// head). There are fewer than 2^32 rows.
struct HeadRows {
  HeadRows(const Tensor& packed, int first_head, int head_count)
      : rows(packed.dim(0) * packed.dim(1) * head_count),
        width(packed.dim(3)),
        slots(static_cast<unsigned>(packed.dim(2))),
        first(static_cast<unsigned>(first_head)),
        heads(static_cast<unsigned>(head_count)) {}

  /// Where row `row` starts in the packed tensor.
  __device__ std::int64_t offset(std::int64_t row) const {
    const unsigned token = static_cast<unsigned>(row) / heads;
    const unsigned head = static_cast<unsigned>(row) % heads;
    return (static_cast<std::int64_t>(token) * slots + first + head) * width;
  }

  std::int64_t rows, width;
  unsigned slots, first, heads;
};

}  // namespace sherd
