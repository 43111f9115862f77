#include "core/cpu_stream.h"
#include "kernels/activation.h"
#include "kernels/cuda_kernels.h"
#include "kernels/fast_math.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

/// Rows of gate_up [rows, 2 * width] and y [rows, width].
struct SwigluShape {
  std::int64_t rows, width;
};

SwigluShape check_operands(const OperandCheck& check, const Tensor& gate_up, const Tensor& y,
                           std::string_view y_name) {
  check.is_float(gate_up, "gate_up");
  check.that(gate_up.dim(-1) % 2 == 0,
             fmt::format("the last dimension of gate_up holds two halves, got {}",
                         to_string(gate_up.shape())));
  const SwigluShape shape{rows_of(gate_up), gate_up.dim(-1) / 2};
  check.is_rows(y, y_name, gate_up.dtype(), shape.rows, shape.width);
  return shape;
}

template <class T>
void run_forward(const T* gate_up, T* y, const SwigluShape& shape) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* gates = gate_up + r * 2 * shape.width;
    const T* ups = gates + shape.width;
    T* out = y + r * shape.width;
#pragma omp simd
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const auto gate = static_cast<float>(gates[i]);
      out[i] = static_cast<T>(gate * fast_sigmoid(gate) * static_cast<float>(ups[i]));
    }
  }
}

/// kRemakes: y is written too.
template <bool kRemakes, class T>
void run_backward(const T* dy, const T* gate_up, T* y, T* dgate_up, const SwigluShape& shape) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const T* gates = gate_up + r * 2 * shape.width;
    const T* ups = gates + shape.width;
    const T* dout = dy + r * shape.width;
    [[maybe_unused]] T* out = kRemakes ? y + r * shape.width : nullptr;
    T* dgates = dgate_up + r * 2 * shape.width;
    T* dups = dgates + shape.width;
#pragma omp simd
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const auto gate = static_cast<float>(gates[i]);
      const auto up = static_cast<float>(ups[i]);
      const auto d = static_cast<float>(dout[i]);
      const SigmoidPair s = fast_sigmoid_pair(gate);
      if constexpr (kRemakes) out[i] = static_cast<T>(gate * s.value * up);
      dgates[i] = static_cast<T>(d * up * (s.value * (1.0f + gate * s.complement)));
      dups[i] = static_cast<T>(d * (gate * s.value));
    }
  }
}

}  // namespace

void swiglu_forward(const Tensor& gate_up, const Tensor& y, Stream& stream) {
  const OperandCheck check("swiglu_forward", stream);
  const SwigluShape shape = check_operands(check, gate_up, y, "y");
  if (y.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::swiglu_forward(gate_up, y, stream);
  with_float(y.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = gate_up.as<T>(), to = y.as<T>()] { run_forward(from, to, shape); });
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& y,
                     const Tensor& dgate_up, Stream& stream) {
  const OperandCheck check("swiglu_backward", stream);
  const SwigluShape shape = check_operands(check, gate_up, dy, "dy");
  if (y.defined()) check.is_rows(y, "y", gate_up.dtype(), shape.rows, shape.width);
  check.is(dgate_up, "dgate_up", gate_up.dtype(), gate_up.shape());
  if (dy.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::swiglu_backward(dy, gate_up, y, dgate_up, stream);
  with_float(dy.dtype(), [&]<class T>() {
    enqueue(stream, [=, up = dy.as<T>(), at = gate_up.as<T>(), again = static_cast<T*>(y.data()),
                     to = dgate_up.as<T>()] {
      again == nullptr ? run_backward<false>(up, at, again, to, shape)
                       : run_backward<true>(up, at, again, to, shape);
    });
  });
}

}  // namespace sherd
