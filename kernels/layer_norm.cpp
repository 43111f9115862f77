#include "kernels/layer_norm.h"

#include <cmath>

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"
#include "kernels/partial_sums.h"

namespace sherd {
namespace {

// Rows copy what they read in loops into locals: the compiler gathers from pointers it finds in
// memory.

struct NormShape {
  std::int64_t rows, width;
};

template <class T>
struct ForwardOperands {
  const T *x, *weight, *bias;
  T* y;
  float *mean, *rstd;
  float epsilon;
};

template <class T>
void forward_row(const ForwardOperands<T>& o, std::int64_t row, std::int64_t width) {
  const T* x = o.x + row * width;
  const T* weight = o.weight;
  const T* bias = o.bias;
  T* y = o.y + row * width;
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < width; ++c) sum += static_cast<float>(x[c]);
  const double mean = sum / static_cast<double>(width);
  double squares = 0.0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) {
    const double centred = static_cast<float>(x[c]) - mean;
    squares += centred * centred;
  }
  const double variance = squares / static_cast<double>(width);
  const auto m = static_cast<float>(mean);
  const auto rstd = static_cast<float>(1.0 / std::sqrt(variance + o.epsilon));
  o.mean[row] = m;
  o.rstd[row] = rstd;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const float normal = (static_cast<float>(x[c]) - m) * rstd;
    y[c] = static_cast<T>(normal * static_cast<float>(weight[c]) + static_cast<float>(bias[c]));
  }
}

template <class T>
struct BackwardOperands {
  const T *dy, *x, *weight;
  const float *mean, *rstd;
  T* dx;
  Accumulate accumulate;
};

template <class T>
void backward_row(const BackwardOperands<T>& o, std::int64_t row, std::int64_t width) {
  const T* dy = o.dy + row * width;
  const T* x = o.x + row * width;
  const T* weight = o.weight;
  T* dx = o.dx + row * width;
  const float mean = o.mean[row];
  const float rstd = o.rstd[row];
  double sum = 0.0;
  double sum_normal = 0.0;
#pragma omp simd reduction(+ : sum, sum_normal)
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    sum += d;
    sum_normal += d * ((static_cast<float>(x[c]) - mean) * rstd);
  }
  const auto mean_d = static_cast<float>(sum / static_cast<double>(width));
  const auto mean_d_normal = static_cast<float>(sum_normal / static_cast<double>(width));
  const bool add = o.accumulate == Accumulate::yes;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const float d = static_cast<float>(dy[c]) * static_cast<float>(weight[c]);
    const float normal = (static_cast<float>(x[c]) - mean) * rstd;
    const float before = add ? static_cast<float>(dx[c]) : 0.0f;
    dx[c] = static_cast<T>(before + rstd * (d - mean_d - normal * mean_d_normal));
  }
}

template <class T, class G>
void sum_weight_gradients(const BackwardOperands<T>& o, const NormShape& shape, G* dweight,
                          G* dbias, Accumulate accumulate) {
  sum_columns(shape.rows, shape.width, dweight, accumulate, [&](std::int64_t r, std::int64_t c) {
    const std::int64_t i = r * shape.width + c;
    const float normal = (static_cast<float>(o.x[i]) - o.mean[r]) * o.rstd[r];
    return static_cast<double>(static_cast<float>(o.dy[i]) * normal);
  });
  sum_columns(shape.rows, shape.width, dbias, accumulate, [&](std::int64_t r, std::int64_t c) {
    return static_cast<double>(static_cast<float>(o.dy[r * shape.width + c]));
  });
}

template <class T>
void run_forward(const ForwardOperands<T>& operands, const NormShape& shape) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) forward_row(operands, r, shape.width);
}

template <class T>
void run_backward(const BackwardOperands<T>& operands, const NormShape& shape) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) backward_row(operands, r, shape.width);
}

}  // namespace

void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream) {
  const OperandCheck check("layer_norm_forward", stream);
  check.is_float(x, "x");
  const NormShape shape{rows_of(x), x.dim(-1)};
  check.is(weight, "weight", x.dtype(), {shape.width});
  check.is(bias, "bias", x.dtype(), {shape.width});
  check.is(y, "y", x.dtype(), x.shape());
  check.is_numel(mean, "mean", DType::f32, shape.rows);
  check.is_numel(rstd, "rstd", DType::f32, shape.rows);
  if (!stream.device().is_cpu()) {
    return on_cuda::layer_norm_forward(x, weight, bias, y, mean, rstd, epsilon, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    const ForwardOperands<T> operands{x.as<T>(),        weight.as<T>(),   bias.as<T>(), y.as<T>(),
                                      mean.as<float>(), rstd.as<float>(), epsilon};
    enqueue(stream, [=] { run_forward(operands, shape); });
  });
}

void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                         Accumulate dx_accumulate, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream) {
  const OperandCheck check("layer_norm_backward", stream);
  check.is_float(x, "x");
  const NormShape shape{rows_of(x), x.dim(-1)};
  check.is(dy, "dy", x.dtype(), x.shape());
  check.is(weight, "weight", x.dtype(), {shape.width});
  check.is_numel(mean, "mean", DType::f32, shape.rows);
  check.is_numel(rstd, "rstd", DType::f32, shape.rows);
  check.is(dx, "dx", x.dtype(), x.shape());
  check.is_sum(dweight, "dweight", x.dtype(), {shape.width});
  check.is(dbias, "dbias", dweight.dtype(), {shape.width});
  if (!stream.device().is_cpu()) {
    return on_cuda::layer_norm_backward(dy, x, weight, mean, rstd, dx, dx_accumulate, dweight,
                                        dbias, weight_accumulate, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    with_sum_of<T>(dweight.dtype(), [&]<class G>() {
      const BackwardOperands<T> operands{dy.as<T>(),       x.as<T>(),        weight.as<T>(),
                                         mean.as<float>(), rstd.as<float>(), dx.as<T>(),
                                         dx_accumulate};
      enqueue(stream, [=, dw = dweight.as<G>(), db = dbias.as<G>()] {
        sum_weight_gradients(operands, shape, dw, db, weight_accumulate);  // dx may overwrite dy
        run_backward(operands, shape);
      });
    });
  });
}

std::int64_t layer_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width) {
  return norm_sums_bytes(rows, width, 2);
}

}  // namespace sherd
