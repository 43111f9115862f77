#include "kernels/first_token.h"

#include <algorithm>

#include "core/cpu_stream.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

void check_operands(const OperandCheck& check, const Tensor& all, std::string_view all_name,
                    const Tensor& first, std::string_view first_name) {
  check.is_float(all, all_name, 3);
  check.is(all, all_name, all.dtype(), {all.dim(0), all.dim(1), all.dim(2)});
  check.that(all.dim(1) > 0, "samples have at least one token");
  check.is(first, first_name, all.dtype(), {all.dim(0), all.dim(2)});
}

}  // namespace

void first_token_forward(const Tensor& x, const Tensor& y, Stream& stream) {
  check_operands(OperandCheck("first_token_forward", stream), x, "x", y, "y");
  if (!stream.device().is_cpu()) return on_cuda::first_token_forward(x, y, stream);
  const std::int64_t samples = x.dim(0), width = x.dim(2), stride = x.dim(1) * width;
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = x.as<T>(), to = y.as<T>()] {
      for (std::int64_t b = 0; b < samples; ++b) {
        std::copy_n(from + b * stride, width, to + b * width);
      }
    });
  });
}

void first_token_backward(const Tensor& dy, const Tensor& dx, Stream& stream) {
  check_operands(OperandCheck("first_token_backward", stream), dx, "dx", dy, "dy");
  if (!stream.device().is_cpu()) return on_cuda::first_token_backward(dy, dx, stream);
  const std::int64_t samples = dx.dim(0), width = dx.dim(2), stride = dx.dim(1) * width;
  with_float(dx.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = dy.as<T>(), to = dx.as<T>()] {
      for (std::int64_t b = 0; b < samples; ++b) {
        std::copy_n(from + b * width, width, to + b * stride);
        std::fill(to + b * stride + width, to + (b + 1) * stride, T{});
      }
    });
  });
}

}  // namespace sherd
