#include <algorithm>

#include "models/block_halves.h"
#include "models/transformer_block.h"

// middle = input + attention(input), normed = norm(middle), sum = normed + mlp(normed),
// output = norm(sum). What lies between is where nothing else is at the time:
//   forward   normed is in the output's place, the first norm's statistics in the second's;
//   backward  normed is in sum's place, and input_gradient is the gradient of sum, normed, middle
//             and the input, one after the other.

namespace sherd {
namespace {

TransformerBlockSpec without_norms(TransformerBlockSpec spec) {
  spec.attention_norm.clear();
  spec.mlp_norm.clear();
  return spec;
}

class PostNormBlock final : public BlockHalves {
 public:
  explicit PostNormBlock(const TransformerBlockSpec& spec)
      : BlockHalves(without_norms(spec)),
        attention_norm_(NormKind::layer, spec.attention_norm, spec.hidden_size, spec.norm_epsilon,
                        parameters_),
        output_norm_(NormKind::layer, spec.mlp_norm, spec.hidden_size, spec.norm_epsilon,
                     parameters_) {}

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    Footprint f = BlockHalves::footprint(shape, precision);
    f.saved.push_back(attention_.middle(shape, precision.compute));  // sum
    for (int i = 0; i < 2; ++i) f.saved.push_back({DType::f32, {shape.tokens()}});
    f.scratch_bytes = std::max(f.scratch_bytes, output_norm_.scratch_bytes(shape.tokens()));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    const auto& [sum, statistics] = own(context.saved);
    attention_.forward(context, middle(context.saved));
    const Tensor& normed = context.output;
    attention_norm_.forward(context.parameters, middle(context.saved), normed, statistics,
                            context.stream);
    mlp_.forward(context, normed, inner(context.saved), sum);
    output_norm_.forward(context.parameters, sum, context.output, statistics, context.stream);
  }

  void backward(const BackwardContext& context) const override {
    const auto& [sum, statistics] = own(context.saved);
    const Tensor& gradient = context.input_gradient;
    output_norm_.backward(context, context.output_gradient, sum, statistics, {}, gradient);
    const Tensor& normed = sum;
    attention_norm_.forward(context.parameters, middle(context.saved), normed, statistics,
                            context.stream);
    BackwardContext mlp_context = context;
    mlp_context.output_gradient = gradient;
    mlp_.backward(mlp_context, normed, inner(context.saved));
    attention_norm_.backward(context, gradient, middle(context.saved), statistics, {}, gradient);
    attention_.backward(context);
  }

 private:
  struct Own {
    Tensor sum;
    NormStatistics statistics;
  };
  Own own(std::span<const Tensor> saved) const {
    const std::span<const Tensor> rest = saved.subspan(saved_count());
    return {rest[0], {rest[1], rest[2]}};
  }

  NormLayer attention_norm_;
  NormLayer output_norm_;
};

}  // namespace

std::unique_ptr<Unit> make_post_norm_block(const TransformerBlockSpec& spec) {
  return std::make_unique<PostNormBlock>(spec);
}

}  // namespace sherd
