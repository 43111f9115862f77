#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace sherd {

/// Hands out aligned views of a workspace, front to back. Default-constructed it holds no memory
/// and only measures, so that one function both sizes a workspace and carves it.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(const Tensor& bytes);

  /// The next view; throws ArgumentError when the workspace is too small for it.
  Tensor take(DType dtype, Shape shape);
  std::int64_t mark() const { return used_bytes_; }
  /// What was taken since `mark` is dead: its memory is handed out again.
  void rewind(std::int64_t mark) { used_bytes_ = mark; }
  /// The most that was ever in use: what the workspace has to hold.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  Tensor memory_;
  bool measuring_ = true;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace sherd
