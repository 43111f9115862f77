#include "models/transformer_block.h"

#include <algorithm>

#include "models/attention_half.h"
#include "models/mlp_half.h"

// Kept from forward to backward is what a product or the attention made, and with norms of heads
// the heads before them. What is elementwise (normed rows and their statistics, the activation) is
// made again in backward's workspace: for a Llama 2C + I elements a token less in each block, a
// third of a Llama 3 8B's, for the time of reading and writing them once.

namespace sherd {
namespace {

class TransformerBlock final : public Unit {
 public:
  explicit TransformerBlock(const TransformerBlockSpec& spec)
      : name_(spec.name),
        dropout_(spec.dropout),
        attention_(spec, parameters_),
        mlp_(spec, parameters_) {}

  std::string_view name() const override { return name_; }
  bool draws_random_numbers() const override { return dropout_ > 0.0f; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    Footprint f;
    f.output = attention_.middle(shape, compute);
    f.saved = attention_.saved(shape, compute);
    f.saved.push_back(attention_.middle(shape, compute));
    f.saved.push_back(mlp_.inner(shape, compute));
    Workspace forward;
    attention_.forward_scratch(forward, shape, compute);
    mlp_.scratch(forward, shape, compute);
    f.forward_workspace_bytes = forward.peak_bytes();
    Workspace backward;
    mlp_.scratch(backward, shape, compute);
    attention_.backward_scratch(backward, shape, compute);
    f.backward_workspace_bytes = backward.peak_bytes();
    f.scratch_bytes =
        std::max(attention_.scratch_bytes(shape, precision), mlp_.scratch_bytes(shape));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    attention_.forward(context, middle(context.saved));
    mlp_.forward(context, middle(context.saved), context.saved.back());
  }

  void backward(const BackwardContext& context) const override {
    // Between the halves, input_gradient is the gradient of what lies between them.
    mlp_.backward(context, middle(context.saved), context.saved.back());
    attention_.backward(context);
  }

  double forward_flops(const BatchShape& shape) const override {
    return attention_.flops(shape) + mlp_.flops(shape);
  }

  std::string chosen_kernels(const BatchShape& shape, bool padded, const Precision& precision,
                             Stream& stream) const override {
    return attention_.chosen_kernels(shape, padded, precision, stream);
  }

 private:
  /// What lies between attention and MLP.
  static const Tensor& middle(std::span<const Tensor> saved) { return saved[saved.size() - 2]; }

  std::string name_;
  float dropout_;
  std::vector<ParameterSpec> parameters_;
  AttentionHalf attention_;
  MlpHalf mlp_;
};

}  // namespace

std::unique_ptr<Unit> make_transformer_block(const TransformerBlockSpec& spec) {
  return std::make_unique<TransformerBlock>(spec);
}

}  // namespace sherd
