#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "core/shard.h"

namespace sherd {

/// Up to four dimensions, outermost first; held inline so that views never allocate. Throws
/// ArgumentError for more elements than any machine holds, so that sums of bytes can't overflow.
class Shape {
 public:
  static constexpr int kMaxRank = 4;
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  int rank() const { return rank_; }
  /// Extent of dimension `i`; negative `i` counts from the last.
  std::int64_t operator[](int i) const { return dims_[i < 0 ? rank_ + i : i]; }
  std::int64_t numel() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "[4, 256, 64]"
std::string to_string(const Shape& shape);

/// A view of contiguous, row-major elements on one device. Copying copies the view; the bytes
/// belong to a Buffer that must outlive every operation enqueued on the view.
class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, DType dtype, Shape shape, Device device = {})
      : data_(data), shape_(shape), dtype_(dtype), device_(device) {}

  /// False for a default-constructed view, which stands for "not there" (no bias, no mask).
  bool defined() const { return shape_.rank() > 0; }
  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t numel() const { return shape_.numel(); }
  std::int64_t size_bytes() const { return numel() * size_of(dtype_); }

  /// Elements as `T`; throws ArgumentError when the dtype is another one.
  template <class T>
  T* as() const {
    if (dtype_ != dtype_of<T>()) throw_dtype(dtype_of<T>());
    return static_cast<T*>(data_);
  }

  /// The same elements under another shape of equal numel.
  Tensor view(Shape shape) const;
  /// Elements [shard.offset, shard.end()) as a 1-d view.
  Tensor flat(Shard shard) const;
  /// Rows [first, first + count) of dimension 0.
  Tensor rows(std::int64_t first, std::int64_t count) const;

 private:
  [[noreturn]] void throw_dtype(DType wanted) const;
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
};

}  // namespace sherd
