#include "models/mlp_half.h"

#include <algorithm>

namespace sherd {

MlpHalf::MlpHalf(const TransformerBlockSpec& spec, std::vector<ParameterSpec>& parameters)
    : hidden_(spec.hidden_size),
      inner_(spec.inner_size),
      activation_(spec.activation),
      in_(spec.norm, spec.mlp_norm, spec.norm_epsilon, spec.mlp_in, parameters),
      out_(spec.mlp_out, spec.dropout, /*site=*/1, parameters) {}

TensorSpec MlpHalf::inner(const BatchShape& shape, DType compute) const {
  return {compute, {shape.samples, shape.sequence, activation_ ? inner_ : 2 * inner_}};
}

/// Forward needs the normed rows first, backward the activation: they share memory.
MlpHalf::Scratch MlpHalf::scratch(Workspace& workspace, const BatchShape& shape,
                                  DType compute) const {
  Scratch s;
  workspace.rewind(0);
  s.norm = in_.scratch(workspace, shape.tokens(), compute);
  workspace.rewind(0);
  s.activated = workspace.take(compute, {shape.tokens(), inner_});
  if (out_.drops()) s.masked = workspace.take(compute, {shape.tokens(), hidden_});
  return s;
}

std::int64_t MlpHalf::scratch_bytes(const BatchShape& shape) const {
  const std::int64_t rows = shape.tokens();
  return std::max(in_.scratch_bytes(rows), out_.scratch_bytes(rows));
}

void MlpHalf::activate(const Tensor& inner, const Tensor& activated, Stream& stream) const {
  if (activation_) {
    activation_forward(inner, activated, *activation_, stream);
  } else {
    swiglu_forward(inner, activated, stream);
  }
}

/// The activation takes the place of its gradient, and inner's gradient that of inner.
void MlpHalf::activate_again(const Tensor& dactivated, const Tensor& inner, Stream& stream) const {
  if (activation_) {
    activation_backward(dactivated, inner, dactivated, inner, *activation_, stream);
  } else {
    swiglu_backward(dactivated, inner, dactivated, inner, stream);
  }
}

void MlpHalf::forward(const ForwardContext& context, const Tensor& middle, const Tensor& inner,
                      const Tensor& output) const {
  Workspace workspace(context.workspace);
  const Scratch s = scratch(workspace, context.batch.shape, context.input.dtype());
  in_.forward(context.parameters, middle, s.norm, inner, context.stream);
  activate(as_rows(inner), s.activated, context.stream);
  out_.forward(context, s.activated, middle, output);
}

void MlpHalf::backward(const BackwardContext& context, const Tensor& middle,
                       const Tensor& saved_inner) const {
  Workspace workspace(context.workspace);
  const Scratch s = scratch(workspace, context.batch.shape, context.input.dtype());
  const Tensor inner = as_rows(saved_inner);
  const Tensor dy = out_.backward_dropout(context, context.output_gradient, s.masked);
  out_.backward_input(context, dy, s.activated);
  activate_again(s.activated, inner, context.stream);
  out_.backward_parameters(context, s.activated, dy);
  in_.backward(context, middle, s.norm, inner, context.output_gradient, context.input_gradient);
}

double MlpHalf::flops(const BatchShape& shape) const {
  return in_.flops(shape.tokens()) + out_.flops(shape.tokens());
}

}  // namespace sherd
