#include "kernels/operand_check.h"

namespace sherd {

void OperandCheck::is(const Tensor& tensor, std::string_view name, DType dtype,
                      const Shape& shape) const {
  is_here(tensor, name);
  if (tensor.dtype() == dtype && tensor.shape() == shape) return;
  fail(tensor, name, fmt::format("{} {}", name_of(dtype), to_string(shape)));
}

void OperandCheck::is_rows(const Tensor& tensor, std::string_view name, DType dtype,
                           std::int64_t rows, std::int64_t columns) const {
  is_here(tensor, name);
  if (tensor.dtype() == dtype && rows_of(tensor) == rows && tensor.dim(-1) == columns) return;
  fail(tensor, name, fmt::format("{} of {} rows of {}", name_of(dtype), rows, columns));
}

void OperandCheck::is_numel(const Tensor& tensor, std::string_view name, DType dtype,
                            std::int64_t numel) const {
  is_here(tensor, name);
  if (tensor.dtype() == dtype && tensor.numel() == numel) return;
  fail(tensor, name, fmt::format("{} of {} elements", name_of(dtype), numel));
}

void OperandCheck::is_float(const Tensor& tensor, std::string_view name, int rank) const {
  is_here(tensor, name);
  const DType dtype = tensor.dtype();
  const bool is_float = dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
  if (is_float && tensor.shape().rank() >= rank) return;
  fail(tensor, name, fmt::format("f32, bf16 or f16 with at least {} dimensions", rank));
}

void OperandCheck::is_sum(const Tensor& tensor, std::string_view name, DType dtype,
                          const Shape& shape) const {
  is(tensor, name, tensor.dtype() == DType::f32 ? DType::f32 : dtype, shape);
}

void OperandCheck::that(bool condition, std::string_view problem) const {
  require(condition, "{}: {}", operation_, problem);
}

void OperandCheck::is_here(const Tensor& tensor, std::string_view name) const {
  require(tensor.defined(), "{}: {} is undefined", operation_, name);
  require(tensor.device() == device_, "{}: {} is on {}, but the stream is on {}", operation_, name,
          name_of(tensor.device()), name_of(device_));
}

void OperandCheck::fail(const Tensor& tensor, std::string_view name,
                        const std::string& expected) const {
  throw ArgumentError(fmt::format("{}: {} is {} {}, expected {}", operation_, name,
                                  name_of(tensor.dtype()), to_string(tensor.shape()), expected));
}

std::int64_t rows_of(const Tensor& tensor) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < tensor.shape().rank(); ++i) rows *= tensor.dim(i);
  return rows;
}

}  // namespace sherd
