#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// GELU is a pass of its own and no epilogue of the product before it: cuBLASLt's takes sums that
/// are not yet rounded to x, so a backward pass that has x alone could not make the same y again.
enum class Activation {
  relu,
  gelu_tanh,  ///< "gelu_new", "gelu_pytorch_tanh"
  gelu_erf,   ///< "gelu"
  silu,
  tanh,
};

/// y = f(x), elementwise; y may alias x.
void activation_forward(const Tensor& x, const Tensor& y, Activation kind, Stream& stream);
/// dx = dy * f'(x), elementwise, and y = f(x) again unless it is undefined: a backward pass that
/// kept x alone needs both. dx may alias dy or x, and y the other.
void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& y, const Tensor& dx,
                         Activation kind, Stream& stream);

/// y = silu(gate) * up. gate_up [..., 2I] holds the gate in its first half; y [..., I].
void swiglu_forward(const Tensor& gate_up, const Tensor& y, Stream& stream);
/// dgate_up [..., 2I] from dy [..., I], and y [..., I] again unless it is undefined. dgate_up may
/// alias gate_up, and y dy.
void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& y,
                     const Tensor& dgate_up, Stream& stream);

}  // namespace sherd
