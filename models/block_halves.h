#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/attention_half.h"
#include "models/mlp_half.h"
#include "models/transformer_block.h"

namespace sherd {

/// What blocks share, wherever their norms are: two halves, and what these save and need.
class BlockHalves : public Unit {
 public:
  explicit BlockHalves(const TransformerBlockSpec& spec);

  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }
  Footprint footprint(const BatchShape& shape, const Precision& precision) const override;
  double forward_flops(const BatchShape& shape) const override {
    return attention_.flops(shape) + mlp_.flops(shape);
  }
  std::string chosen_kernels(const BatchShape& shape, bool padded, const Precision& precision,
                             Stream& stream) const override {
    return attention_.chosen_kernels(shape, padded, precision, stream);
  }

 protected:
  /// What lies between attention and MLP.
  const Tensor& middle(std::span<const Tensor> saved) const { return saved[attention_saved_]; }
  const Tensor& inner(std::span<const Tensor> saved) const { return saved[attention_saved_ + 1]; }
  /// What a block adds to the saved tensors is from here on.
  std::size_t saved_count() const { return attention_saved_ + 2; }

  std::string name_;
  std::vector<ParameterSpec> parameters_;
  AttentionHalf attention_;
  MlpHalf mlp_;

 private:
  std::size_t attention_saved_;
};

}  // namespace sherd
