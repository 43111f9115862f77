#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "kernels/operand_check.h"

namespace sherd {

/// Heads [first, first + heads) of a packed tensor [B, T, S, D], as rows ordered (token, head).
struct HeadRange {
  HeadRange(const OperandCheck& check, const Tensor& packed, int first_head, int head_count) {
    check.is_float(packed, "the packed tensor", 4);
    check.that(first_head >= 0 && head_count >= 0 && first_head + head_count <= packed.dim(2),
               fmt::format("heads [{}, {}) are outside the {} of {}", first_head,
                           first_head + head_count, packed.dim(2), to_string(packed.shape())));
    tokens = packed.dim(0) * packed.dim(1);
    slots = packed.dim(2);
    width = packed.dim(3);
    first = first_head;
    heads = head_count;
  }

  std::int64_t rows() const { return tokens * heads; }
  /// Where row `r` starts in the packed tensor.
  std::int64_t offset(std::int64_t r) const {
    return (r / heads * slots + first + r % heads) * width;
  }

  std::int64_t tokens, slots, width, first, heads;
};

}  // namespace sherd
