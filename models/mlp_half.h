#pragma once

#include <optional>
#include <vector>

#include "models/layers.h"
#include "models/transformer_block.h"

namespace sherd {

/// The second half of a block: output = middle + dropout(mlp(norm(middle))), with the norm or
/// without.
class MlpHalf {
 public:
  /// Appends its parameters to the unit's.
  MlpHalf(const TransformerBlockSpec& spec, std::vector<ParameterSpec>& parameters);

  /// What the activation is of; saved by the unit.
  TensorSpec inner(const BatchShape& shape, DType compute) const;

  void forward(const ForwardContext& context, const Tensor& middle, const Tensor& inner,
               const Tensor& output) const;
  /// The gradient of middle, from output_gradient, goes to input_gradient; without a norm they are
  /// one.
  void backward(const BackwardContext& context, const Tensor& middle, const Tensor& inner) const;
  double flops(const BatchShape& shape) const;

  struct Scratch {
    NormScratch norm;
    Tensor activated;
    Tensor masked;  ///< gradient in front of the dropout
  };
  /// Taken from the workspace's first byte on.
  Scratch scratch(Workspace& workspace, const BatchShape& shape, DType compute) const;
  std::int64_t scratch_bytes(const BatchShape& shape) const;

 private:
  void activate(const Tensor& inner, const Tensor& activated, Stream& stream) const;
  void activate_again(const Tensor& dactivated, const Tensor& inner, Stream& stream) const;

  std::int64_t hidden_;
  std::int64_t inner_;
  std::optional<Activation> activation_;
  NormedLinear in_;
  ResidualLayer out_;
};

}  // namespace sherd
