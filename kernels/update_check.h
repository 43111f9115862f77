#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/tensor.h"
#include "kernels/update.h"

namespace sherd {

/// What every optimizer update checks on the host: `tensor` holds one f32 per element of the shard
/// …
inline void check_flat(const Tensor& tensor, const char* name, std::int64_t numel) {
  require(tensor.dtype() == DType::f32 && tensor.numel() == numel,
          "the {} of an update over {} elements is f32 [{}], got {} {}", name, numel, numel,
          name_of(tensor.dtype()), to_string(tensor.shape()));
}

/// … and there are segments and scalars to read.
inline void check_step(const DecaySegment* segments, int segment_count,
                       const UpdateScalars* scalars) {
  require(segments != nullptr && segment_count > 0 && scalars != nullptr,
          "an update needs its decay segments (at least 1, got {}) and its scalars", segment_count);
}

}  // namespace sherd
