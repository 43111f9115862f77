#include "kernels/rms_norm.h"

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"
#include "kernels/partial_sums.h"
#include "kernels/rms_rows.h"

namespace sherd {

void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream) {
  const OperandCheck check("rms_norm_forward", stream);
  check.is_float(x, "x");
  const std::int64_t rows = rows_of(x);
  const std::int64_t width = x.dim(-1);
  check.is(weight, "weight", x.dtype(), {width});
  check.is(y, "y", x.dtype(), x.shape());
  check.is_numel(rstd, "rstd", DType::f32, rows);
  if (!stream.device().is_cpu()) {
    return on_cuda::rms_norm_forward(x, weight, y, rstd, epsilon, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream,
            [=, x = x.as<T>(), weight = weight.as<T>(), y = y.as<T>(), rstd = rstd.as<float>()] {
#pragma omp parallel for schedule(static)
              for (std::int64_t r = 0; r < rows; ++r) {
                rstd[r] = rms_row_forward(x + r * width, weight, y + r * width, width, epsilon);
              }
            });
  });
}

namespace {

template <class T, class G>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float* rstd;
  T* dx;
  Accumulate dx_accumulate;
  G* dweight;
  Accumulate weight_accumulate;
};

template <class T, class G>
void run_backward(const BackwardOperands<T, G>& o, std::int64_t rows, std::int64_t width) {
  sum_columns(rows, width, o.dweight, o.weight_accumulate, [&](std::int64_t r, std::int64_t c) {
    const std::int64_t i = r * width + c;
    return static_cast<double>(static_cast<float>(o.dy[i]) *
                               (static_cast<float>(o.x[i]) * o.rstd[r]));
  });
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = r * width;
    rms_row_backward(o.dy + i, o.x + i, o.weight, o.rstd[r], o.dx + i, width, o.dx_accumulate);
  }
}

}  // namespace

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& dx, Accumulate dx_accumulate, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream) {
  const OperandCheck check("rms_norm_backward", stream);
  check.is_float(x, "x");
  const std::int64_t rows = rows_of(x);
  const std::int64_t width = x.dim(-1);
  check.is(dy, "dy", x.dtype(), x.shape());
  check.is(weight, "weight", x.dtype(), {width});
  check.is_numel(rstd, "rstd", DType::f32, rows);
  check.is(dx, "dx", x.dtype(), x.shape());
  check.is_sum(dweight, "dweight", x.dtype(), {width});
  if (!stream.device().is_cpu()) {
    return on_cuda::rms_norm_backward(dy, x, weight, rstd, dx, dx_accumulate, dweight,
                                      weight_accumulate, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    with_sum_of<T>(dweight.dtype(), [&]<class G>() {
      const BackwardOperands<T, G> operands{dy.as<T>(),       x.as<T>(),        weight.as<T>(),
                                            rstd.as<float>(), dx.as<T>(),       dx_accumulate,
                                            dweight.as<G>(),  weight_accumulate};
      enqueue(stream, [=] { run_backward(operands, rows, width); });
    });
  });
}

std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width) {
  return norm_sums_bytes(rows, width, 1);
}

}  // namespace sherd
