#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

enum class Activation {
  relu,
  gelu_tanh,  ///< "gelu_new", "gelu_pytorch_tanh"
  gelu_erf,   ///< "gelu"
  silu,
};

/// y = f(x), elementwise; y may alias x.
void activation_forward(const Tensor& x, const Tensor& y, Activation kind, Stream& stream);
/// dx = dy * f'(x), elementwise; dx may alias dy.
void activation_backward(const Tensor& dy, const Tensor& x, const Tensor& dx, Activation kind,
                         Stream& stream);

/// y = silu(gate) * up. gate_up [..., 2I] holds the gate in its first half; y [..., I].
void swiglu_forward(const Tensor& gate_up, const Tensor& y, Stream& stream);
/// dgate_up [..., 2I] from dy [..., I]; dgate_up may alias gate_up.
void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& dgate_up,
                     Stream& stream);

}  // namespace sherd
