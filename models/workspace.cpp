#include "models/workspace.h"

#include <algorithm>
#include <cstddef>

#include "core/buffer.h"

namespace sherd {

Workspace::Workspace(const Tensor& bytes) : memory_(bytes), measuring_(false) {}

Tensor Workspace::take(DType dtype, Shape shape) {
  const std::int64_t offset = used_bytes_;
  const std::int64_t bytes = shape.numel() * size_of(dtype);
  used_bytes_ = aligned(offset + bytes);
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  if (measuring_ || bytes == 0) return {nullptr, dtype, shape, memory_.device()};
  require(offset + bytes <= memory_.size_bytes(),
          "a workspace of {} bytes is too small: {} {} at byte {} does not fit",
          memory_.size_bytes(), name_of(dtype), to_string(shape), offset);
  return {static_cast<std::byte*>(memory_.data()) + offset, dtype, shape, memory_.device()};
}

}  // namespace sherd
