#include "kernels/linear.h"

#include <algorithm>
#include <limits>

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"
#include "kernels/partial_sums.h"
#include "kernels/product.h"

namespace sherd {
namespace {

/// rows of x [rows, in] and y [rows, out] of one layer.
struct LinearShape {
  std::int64_t rows, in, out;
};

void check_sizes(const OperandCheck& check, const LinearShape& shape) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  check.that(std::max({shape.rows, shape.in, shape.out}) <= kMost,
             fmt::format("rows and features go up to {}, got {} rows, {} -> {}", kMost, shape.rows,
                         shape.in, shape.out));
}

Shape weight_shape(const LinearShape& shape, WeightLayout layout) {
  if (layout == WeightLayout::out_in) return {shape.out, shape.in};
  return {shape.in, shape.out};
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y,
                    WeightLayout layout, Stream& stream) {
  linear_forward(x, w, bias, {}, y, layout, stream);
}

void linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Tensor& y, WeightLayout layout, Stream& stream) {
  const OperandCheck check("linear_forward", stream);
  check.is_float(x, "x");
  check.is_float(y, "y");
  const LinearShape shape{rows_of(x), x.dim(-1), y.dim(-1)};
  check_sizes(check, shape);
  check.is(w, "w", x.dtype(), weight_shape(shape, layout));
  if (bias.defined()) check.is(bias, "bias", x.dtype(), {shape.out});
  if (residual.defined()) {
    check.is_rows(residual, "residual", x.dtype(), shape.rows, shape.out);
  }
  check.is_rows(y, "y", x.dtype(), shape.rows, shape.out);
  if (!stream.device().is_cpu()) {
    return on_cuda::linear_forward(x, w, bias, residual, y, layout, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    Product<T, T> p{shape.rows, shape.out, shape.in};
    p.a = {x.as<T>(), shape.in, false};
    p.b = {w.as<T>(), w.dim(1), layout == WeightLayout::out_in};
    p.c = y.as<T>();
    p.addend = residual.defined() ? residual.as<T>() : nullptr;
    p.bias = bias.defined() ? bias.as<T>() : nullptr;
    enqueue(stream, [p] { multiply(p); });
  });
}

void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, WeightLayout layout,
                           Accumulate accumulate, Stream& stream) {
  const OperandCheck check("linear_backward_input", stream);
  check.is_float(dy, "dy");
  check.is_float(dx, "dx");
  const LinearShape shape{rows_of(dy), dx.dim(-1), dy.dim(-1)};
  check_sizes(check, shape);
  check.is(w, "w", dy.dtype(), weight_shape(shape, layout));
  check.is_rows(dx, "dx", dy.dtype(), shape.rows, shape.in);
  if (!stream.device().is_cpu()) {
    return on_cuda::linear_backward_input(dy, w, dx, layout, accumulate, stream);
  }
  with_float(dy.dtype(), [&]<class T>() {
    Product<T, T> p{shape.rows, shape.in, shape.out};
    p.a = {dy.as<T>(), shape.out, false};
    p.b = {w.as<T>(), w.dim(1), layout == WeightLayout::in_out};
    p.c = dx.as<T>();
    p.addend = accumulate == Accumulate::yes ? p.c : nullptr;
    enqueue(stream, [p] { multiply(p); });
  });
}

void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dw,
                            WeightLayout layout, Accumulate accumulate, Stream& stream) {
  const OperandCheck check("linear_backward_weight", stream);
  check.is_float(x, "x");
  check.is_float(dy, "dy");
  const LinearShape shape{rows_of(x), x.dim(-1), dy.dim(-1)};
  check_sizes(check, shape);
  check.is_rows(dy, "dy", x.dtype(), shape.rows, shape.out);
  check.is_sum(dw, "dw", x.dtype(), weight_shape(shape, layout));
  if (!stream.device().is_cpu()) {
    return on_cuda::linear_backward_weight(x, dy, dw, layout, accumulate, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    with_sum_of<T>(dw.dtype(), [&]<class G>() {
      Product<T, G> p{dw.dim(0), dw.dim(1), shape.rows};
      p.a = {dy.as<T>(), shape.out, true};
      p.b = {x.as<T>(), shape.in, false};
      if (layout == WeightLayout::in_out) {
        p.a = {x.as<T>(), shape.in, true};
        p.b = {dy.as<T>(), shape.out, false};
      }
      p.c = dw.as<G>();
      p.addend = accumulate == Accumulate::yes ? p.c : nullptr;
      enqueue(stream, [p] { multiply(p); });
    });
  });
}

void bias_backward(const Tensor& dy, const Tensor& dbias, Accumulate accumulate, Stream& stream) {
  const OperandCheck check("bias_backward", stream);
  check.is_float(dy, "dy");
  check.is_sum(dbias, "dbias", dy.dtype(), {dy.dim(-1)});
  if (!stream.device().is_cpu()) return on_cuda::bias_backward(dy, dbias, accumulate, stream);
  const std::int64_t rows = rows_of(dy);
  const std::int64_t columns = dy.dim(-1);
  with_float(dy.dtype(), [&]<class T>() {
    with_sum_of<T>(dbias.dtype(), [&]<class G>() {
      enqueue(stream, [=, from = dy.as<T>(), to = dbias.as<G>()] {
        sum_columns(rows, columns, to, accumulate, [=](std::int64_t r, std::int64_t c) {
          return static_cast<double>(static_cast<float>(from[r * columns + c]));
        });
      });
    });
  });
}

std::int64_t bias_backward_scratch_bytes(std::int64_t rows, std::int64_t width) {
  return column_sums_bytes(rows, width);
}

}  // namespace sherd
