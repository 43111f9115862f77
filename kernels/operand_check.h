#pragma once

#include <string_view>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// Host-side checks of the operands of one operation; what fails is an ArgumentError that names the
/// operation, the operand, what it is and what it should be.
class OperandCheck {
 public:
  /// `operation` is a literal; `stream` is where the operation will run.
  OperandCheck(std::string_view operation, const Stream& stream)
      : operation_(operation), device_(stream.device()) {}

  /// `tensor` is there, on the stream's device, with this dtype and shape.
  void is(const Tensor& tensor, std::string_view name, DType dtype, const Shape& shape) const;
  /// The same, with any shape of `rows` times `columns` elements whose last dimension is `columns`.
  void is_rows(const Tensor& tensor, std::string_view name, DType dtype, std::int64_t rows,
               std::int64_t columns) const;
  /// The same, with any shape of `numel` elements.
  void is_numel(const Tensor& tensor, std::string_view name, DType dtype, std::int64_t numel) const;
  /// `tensor` is there, on the stream's device, with a float dtype and at least `rank` dimensions.
  void is_float(const Tensor& tensor, std::string_view name, int rank = 1) const;
  /// A gradient or another sum: of `dtype` or f32.
  void is_sum(const Tensor& tensor, std::string_view name, DType dtype, const Shape& shape) const;
  void that(bool condition, std::string_view problem) const;

 private:
  void is_here(const Tensor& tensor, std::string_view name) const;
  [[noreturn]] void fail(const Tensor& tensor, std::string_view name,
                         const std::string& expected) const;
  std::string_view operation_;
  Device device_;
};

/// Product of all dimensions but the last: the rows of a tensor seen as a matrix.
std::int64_t rows_of(const Tensor& tensor);

/// Calls `f.template operator()<G>()` with the element type of a gradient that is of type T or f32.
template <class T, class F>
void with_sum_of(DType dtype, F&& f) {
  if (dtype == dtype_of<T>()) {
    f.template operator()<T>();
  } else {
    f.template operator()<float>();
  }
}

}  // namespace sherd
