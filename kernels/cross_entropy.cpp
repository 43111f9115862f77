#include "kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu_stream.h"
#include "kernels/cuda_kernels.h"
#include "kernels/fast_math.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

constexpr std::int64_t kChunk = 2048;  // logits read twice while they are in the first cache
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct LossShape {
  std::int64_t rows, vocabulary;
};

void check_labels(const std::int32_t* labels, const LossShape& shape) {
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const std::int32_t label = labels[r];
    if (label == kIgnoredLabel || (label >= 0 && label < shape.vocabulary)) continue;
    throw DataError(
        fmt::format("label {} at position {} is outside [0, {}) and is not the ignored label {}",
                    label, r, shape.vocabulary, kIgnoredLabel));
  }
}

/// Σ e^(x - largest) of one row.
struct Softmax {
  float largest = kMinusInfinity;
  double sum = 0.0;

  template <class T>
  void take(const T* x, std::int64_t count) {
    float chunk_largest = largest;
#pragma omp simd reduction(max : chunk_largest)
    for (std::int64_t i = 0; i < count; ++i) {
      chunk_largest = std::max(chunk_largest, static_cast<float>(x[i]));
    }
    const float base = chunk_largest == kMinusInfinity ? 0.0f : chunk_largest;
    double chunk_sum = 0.0;
#pragma omp simd reduction(+ : chunk_sum)
    for (std::int64_t i = 0; i < count; ++i) {
      chunk_sum += fast_exp(static_cast<float>(x[i]) - base);
    }
    sum = sum * fast_exp(largest - base) + chunk_sum;
    largest = chunk_largest;
  }
};

template <class T>
Softmax softmax_of(const T* logits, std::int64_t vocabulary) {
  Softmax softmax;
  for (std::int64_t first = 0; first < vocabulary; first += kChunk) {
    softmax.take(logits + first, std::min(kChunk, vocabulary - first));
  }
  return softmax;
}

template <class T>
float loss_of(const Softmax& softmax, const T* logits, std::int32_t label) {
  const double label_logit = static_cast<float>(logits[label]);
  return static_cast<float>(std::log(softmax.sum) + (softmax.largest - label_logit));
}

template <class T>
void turn_into_gradient(const Softmax& softmax, T* logits, std::int64_t vocabulary,
                        std::int32_t label, float scale) {
  const auto inverse = static_cast<float>(1.0 / softmax.sum);
  const float at_label = fast_exp(static_cast<float>(logits[label]) - softmax.largest) * inverse;
#pragma omp simd
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    const float p = fast_exp(static_cast<float>(logits[i]) - softmax.largest) * inverse;
    logits[i] = static_cast<T>(p * scale);
  }
  logits[label] = static_cast<T>((at_label - 1.0f) * scale);
}

template <class T>
void run_forward(const T* logits, const std::int32_t* labels, float* losses,
                 const LossShape& shape) {
  check_labels(labels, shape);
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* row = logits + r * shape.vocabulary;
    losses[r] = labels[r] == kIgnoredLabel
                    ? 0.0f
                    : loss_of(softmax_of(row, shape.vocabulary), row, labels[r]);
  }
}

template <class T>
void run_forward_backward(T* logits, const std::int32_t* labels, float* losses, const float* scale,
                          const LossShape& shape) {
  check_labels(labels, shape);
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    T* row = logits + r * shape.vocabulary;
    if (labels[r] == kIgnoredLabel) {
      losses[r] = 0.0f;
      std::fill_n(row, shape.vocabulary, T{});
      continue;
    }
    const Softmax softmax = softmax_of(row, shape.vocabulary);
    losses[r] = loss_of(softmax, row, labels[r]);
    turn_into_gradient(softmax, row, shape.vocabulary, labels[r], *scale);
  }
}

LossShape check_operands(const OperandCheck& check, const Tensor& logits, const Tensor& labels,
                         const Tensor& losses) {
  check.is_float(logits, "logits", 2);
  const LossShape shape{rows_of(logits), logits.dim(-1)};
  check.is_numel(labels, "labels", DType::i32, shape.rows);
  check.is_numel(losses, "losses", DType::f32, shape.rows);
  return shape;
}

}  // namespace

void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                           Stream& stream) {
  const OperandCheck check("cross_entropy_forward", stream);
  const LossShape shape = check_operands(check, logits, labels, losses);
  if (!stream.device().is_cpu()) {
    return on_cuda::cross_entropy_forward(logits, labels, losses, stream);
  }
  with_float(logits.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = logits.as<T>(), wanted = labels.as<std::int32_t>(),
                     to = losses.as<float>()] { run_forward(from, wanted, to, shape); });
  });
}

void cross_entropy_forward_backward(const Tensor& logits, const Tensor& labels,
                                    const Tensor& losses, const Tensor& scale, Stream& stream) {
  const OperandCheck check("cross_entropy_forward_backward", stream);
  const LossShape shape = check_operands(check, logits, labels, losses);
  check.is_numel(scale, "scale", DType::f32, 1);
  if (!stream.device().is_cpu()) {
    return on_cuda::cross_entropy_forward_backward(logits, labels, losses, scale, stream);
  }
  with_float(logits.dtype(), [&]<class T>() {
    enqueue(stream,
            [=, at = logits.as<T>(), wanted = labels.as<std::int32_t>(), to = losses.as<float>(),
             factor = scale.as<float>()] { run_forward_backward(at, wanted, to, factor, shape); });
  });
}

}  // namespace sherd
