#include "models/transformer_block.h"

#include "models/block_halves.h"

namespace sherd {
namespace {

class TransformerBlock final : public BlockHalves {
 public:
  using BlockHalves::BlockHalves;

  void forward(const ForwardContext& context) const override {
    attention_.forward(context, middle(context.saved));
    mlp_.forward(context, middle(context.saved), inner(context.saved), context.output);
  }

  void backward(const BackwardContext& context) const override {
    // Between the halves, input_gradient is the gradient of what lies between them.
    mlp_.backward(context, middle(context.saved), inner(context.saved));
    attention_.backward(context);
  }
};

}  // namespace

std::unique_ptr<Unit> make_transformer_block(const TransformerBlockSpec& spec) {
  return std::make_unique<TransformerBlock>(spec);
}

}  // namespace sherd
