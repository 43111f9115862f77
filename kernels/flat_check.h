#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/operand_check.h"
#include "kernels/update.h"

namespace sherd {

/// `tensor` is there, on the stream's device, with this dtype and `numel` elements in any shape.
inline void check_flat(const OperandCheck& check, const Tensor& tensor, std::string_view name,
                       DType dtype, std::int64_t numel) {
  check.is(tensor, name, dtype, tensor.numel() == numel ? tensor.shape() : Shape{numel});
}

/// A count of non-finite values: one i64.
inline void check_count(const OperandCheck& check, const Tensor& count) {
  check_flat(check, count, "non_finite", DType::i64, 1);
}

/// There are decay segments and scalars to read.
inline void check_step(const OperandCheck& check, const DecaySegment* segments, int segment_count,
                       const UpdateScalars* scalars) {
  check.that(segments != nullptr && segment_count > 0, "there are no decay segments");
  check.that(scalars != nullptr, "there are no scalars");
}

}  // namespace sherd
