#include "kernels/norm.h"

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/norm_rows.h"
#include "kernels/operand_check.h"
#include "kernels/partial_sums.h"

namespace sherd {
namespace {

struct NormShape {
  std::int64_t rows, width;
};

/// RMS norm has neither mean nor bias.
template <class T>
struct ForwardOperands {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
};

template <bool kCentred, class T>
void run_forward(const ForwardOperands<T>& o, const NormShape& shape, float epsilon) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t i = r * shape.width;
    const NormStatistic statistic =
        norm_row_forward<kCentred>(o.x + i, o.weight, o.bias, o.y + i, shape.width, epsilon);
    if constexpr (kCentred) o.mean[r] = statistic.mean;
    o.rstd[r] = statistic.rstd;
  }
}

template <class T>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  const T* residual;
  T* dx;

  template <bool kCentred>
  NormStatistic statistic(std::int64_t r) const {
    return {kCentred ? mean[r] : 0.0f, rstd[r]};
  }
};

template <bool kCentred, class T, class G>
void sum_weight_gradients(const BackwardOperands<T>& o, const NormShape& shape, G* dweight,
                          G* dbias, Accumulate accumulate) {
  sum_columns(shape.rows, shape.width, dweight, accumulate, [&](std::int64_t r, std::int64_t c) {
    const std::int64_t i = r * shape.width + c;
    const auto [mean, rstd] = o.template statistic<kCentred>(r);
    const float normal = (static_cast<float>(o.x[i]) - mean) * rstd;
    return static_cast<double>(static_cast<float>(o.dy[i]) * normal);
  });
  if constexpr (kCentred) {
    sum_columns(shape.rows, shape.width, dbias, accumulate, [&](std::int64_t r, std::int64_t c) {
      return static_cast<double>(static_cast<float>(o.dy[r * shape.width + c]));
    });
  }
}

/// The gradients of weights come first: dx may overwrite dy.
template <bool kCentred, class T, class G>
void run_backward(const BackwardOperands<T>& o, const NormShape& shape, G* dweight, G* dbias,
                  Accumulate accumulate) {
  sum_weight_gradients<kCentred>(o, shape, dweight, dbias, accumulate);
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int64_t i = r * shape.width;
    const T* residual = o.residual == nullptr ? nullptr : o.residual + i;
    norm_row_backward<kCentred>(o.dy + i, o.x + i, o.weight, o.template statistic<kCentred>(r),
                                residual, o.dx + i, shape.width);
  }
}

template <class T>
T* elements_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.as<T>() : nullptr;
}

NormShape check_forward(const OperandCheck& check, const Tensor& x, const Tensor& weight,
                        const Tensor& y, const Tensor& rstd) {
  check.is_float(x, "x");
  const NormShape shape{rows_of(x), x.dim(-1)};
  check.is(weight, "weight", x.dtype(), {shape.width});
  check.is(y, "y", x.dtype(), x.shape());
  check.is_numel(rstd, "rstd", DType::f32, shape.rows);
  return shape;
}

NormShape check_backward(const OperandCheck& check, const Tensor& dy, const Tensor& x,
                         const Tensor& weight, const Tensor& rstd, const Tensor& residual,
                         const Tensor& dx, const Tensor& dweight) {
  const NormShape shape = check_forward(check, x, weight, dx, rstd);
  check.is(dy, "dy", x.dtype(), x.shape());
  if (residual.defined()) check.is(residual, "residual", x.dtype(), x.shape());
  check.is_sum(dweight, "dweight", x.dtype(), {shape.width});
  return shape;
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream) {
  const OperandCheck check("layer_norm_forward", stream);
  const NormShape shape = check_forward(check, x, weight, y, rstd);
  check.is(bias, "bias", x.dtype(), {shape.width});
  check.is_numel(mean, "mean", DType::f32, shape.rows);
  if (!stream.device().is_cpu()) {
    return on_cuda::layer_norm_forward(x, weight, bias, y, mean, rstd, epsilon, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    const ForwardOperands<T> operands{x.as<T>(), weight.as<T>(),   bias.as<T>(),
                                      y.as<T>(), mean.as<float>(), rstd.as<float>()};
    enqueue(stream, [=] { run_forward<true>(operands, shape, epsilon); });
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& residual,
                         const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream) {
  const OperandCheck check("layer_norm_backward", stream);
  const NormShape shape = check_backward(check, dy, x, weight, rstd, residual, dx, dweight);
  check.is_numel(mean, "mean", DType::f32, shape.rows);
  check.is(dbias, "dbias", dweight.dtype(), {shape.width});
  if (!stream.device().is_cpu()) {
    return on_cuda::layer_norm_backward(dy, x, weight, mean, rstd, residual, dx, dweight, dbias,
                                        weight_accumulate, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    with_sum_of<T>(dweight.dtype(), [&]<class G>() {
      const BackwardOperands<T> operands{dy.as<T>(),       x.as<T>(),
                                         weight.as<T>(),   mean.as<float>(),
                                         rstd.as<float>(), elements_of<T>(residual),
                                         dx.as<T>()};
      enqueue(stream, [=, dw = dweight.as<G>(), db = dbias.as<G>()] {
        run_backward<true>(operands, shape, dw, db, weight_accumulate);
      });
    });
  });
}

std::int64_t layer_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width) {
  return norm_sums_bytes(rows, width, 2);
}

void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream) {
  const NormShape shape =
      check_forward(OperandCheck("rms_norm_forward", stream), x, weight, y, rstd);
  if (!stream.device().is_cpu()) {
    return on_cuda::rms_norm_forward(x, weight, y, rstd, epsilon, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    const ForwardOperands<T> operands{x.as<T>(), weight.as<T>(), nullptr,
                                      y.as<T>(), nullptr,        rstd.as<float>()};
    enqueue(stream, [=] { run_forward<false>(operands, shape, epsilon); });
  });
}

void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream) {
  const NormShape shape = check_backward(OperandCheck("rms_norm_backward", stream), dy, x, weight,
                                         rstd, residual, dx, dweight);
  if (!stream.device().is_cpu()) {
    return on_cuda::rms_norm_backward(dy, x, weight, rstd, residual, dx, dweight, weight_accumulate,
                                      stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    with_sum_of<T>(dweight.dtype(), [&]<class G>() {
      const BackwardOperands<T> operands{dy.as<T>(), x.as<T>(),        weight.as<T>(),
                                         nullptr,    rstd.as<float>(), elements_of<T>(residual),
                                         dx.as<T>()};
      enqueue(stream, [=, dw = dweight.as<G>()] {
        run_backward<false>(operands, shape, dw, static_cast<G*>(nullptr), weight_accumulate);
      });
    });
  });
}

std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width) {
  return norm_sums_bytes(rows, width, 1);
}

}  // namespace sherd
