#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "models/layers.h"
#include "models/transformer_block.h"

namespace sherd {

/// The first half of a block: middle = input + dropout(attention(norm(input))), with the norm or
/// without.
class AttentionHalf {
 public:
  /// Appends its parameters to the unit's.
  AttentionHalf(const TransformerBlockSpec& spec, std::vector<ParameterSpec>& parameters);

  /// The unit's first saved tensors are these; `middle` is among what the unit adds.
  std::vector<TensorSpec> saved(const BatchShape& shape, DType compute) const;
  TensorSpec middle(const BatchShape& shape, DType compute) const;

  void forward(const ForwardContext& context, const Tensor& middle) const;
  /// The gradient of middle, in input_gradient, becomes that of the input.
  void backward(const BackwardContext& context) const;
  double flops(const BatchShape& shape) const;
  /// As the unit's.
  std::string chosen_kernels(const BatchShape& shape, bool padded, const Precision& precision,
                             Stream& stream) const;

  struct BackwardScratch {
    Tensor masked;  ///< gradient in front of the dropout
    Tensor dqkv;
    Tensor dattended;
    NormScratch norm;
  };
  /// Taken from the workspace's first byte on.
  NormScratch forward_scratch(Workspace& workspace, const BatchShape& shape, DType compute) const;
  BackwardScratch backward_scratch(Workspace& workspace, const BatchShape& shape,
                                   DType compute) const;
  std::int64_t scratch_bytes(const BatchShape& shape, const Precision& precision) const;

 private:
  /// The norm and rotation of some heads of a packed qkv tensor.
  struct HeadNorm {
    int first_head;
    int heads;
    std::size_t weight;  ///< which of the unit's parameters
    std::size_t saved;   ///< from here on two saved tensors: the heads before, and rstd
  };
  static std::vector<HeadNorm> head_norms(const TransformerBlockSpec& spec,
                                          std::vector<ParameterSpec>& parameters);
  void rotate(const ForwardContext& context) const;
  void rotate_back(const BackwardContext& context, const Tensor& dqkv) const;

  std::int64_t attended_width() const { return heads_ * head_dim_; }
  std::int64_t qkv_width() const { return qkv_heads() * head_dim_; }
  std::int64_t qkv_heads() const { return heads_ + 2 * kv_heads_; }
  AttentionSpec attention_spec(bool repeatable) const;

  std::int64_t hidden_;
  std::int64_t head_dim_;
  int heads_;
  int kv_heads_;
  bool causal_;
  float norm_epsilon_;
  std::optional<RopeSpec> rope_;
  NormedLinear qkv_;
  std::vector<HeadNorm> head_norms_;
  ResidualLayer out_;
};

}  // namespace sherd
