#include "models/token_embedding.h"

#include <algorithm>

#include "kernels/embedding.h"
#include "models/layers.h"
#include "models/workspace.h"

namespace sherd {
namespace {

constexpr std::size_t kTable = 0;
constexpr std::size_t kPositions = 1;
constexpr int kEmbeddingDropout = 0;

class TokenEmbedding final : public Unit {
 public:
  explicit TokenEmbedding(const TokenEmbeddingSpec& spec)
      : spec_(spec), dropout_(spec.dropout, kEmbeddingDropout) {}

  std::string_view name() const override { return "embedding"; }

  std::vector<ParameterSpec> parameters() const override {
    const Init init{.kind = Init::Kind::normal, .scale = spec_.init_std};
    std::vector<ParameterSpec> specs{
        matrix_parameter(spec_.table_name, {spec_.vocab_size, spec_.hidden_size}, init)};
    if (has_positions()) {
      specs.push_back(
          matrix_parameter(spec_.positions_name, {spec_.max_positions, spec_.hidden_size}, init));
    }
    return specs;
  }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    Workspace backward;
    masked_gradient(backward, compute, output_shape(shape));
    Footprint f;
    f.output = {compute, output_shape(shape)};
    f.backward_workspace_bytes = backward.peak_bytes();
    f.scratch_bytes =
        std::max(embedding_backward_scratch_bytes(shape.tokens()),
                 position_backward_scratch_bytes(shape.samples, shape.sequence, spec_.hidden_size));
    return f;
  }

  void forward(const ForwardContext& context) const override {
    embedding_forward(context.batch.inputs, context.parameters[kTable], context.output,
                      Accumulate::no, context.stream);
    if (has_positions()) {
      position_forward(context.parameters[kPositions], context.output, context.stream);
    }
    if (context.training && dropout_.drops()) {
      dropout_.apply(context.batch, context.rng, context.output, context.output, context.stream);
    }
  }

  void backward(const BackwardContext& context) const override {
    Tensor dy = context.output_gradient;
    if (dropout_.drops()) {
      Workspace workspace(context.workspace);
      const Tensor masked = masked_gradient(workspace, dy.dtype(), dy.shape());
      dropout_.apply(context.batch, context.rng, dy, masked, context.stream);
      dy = masked;
    }
    if (has_positions()) {
      position_backward(dy, context.gradients[kPositions], context.accumulate[kPositions],
                        context.stream);
    }
    embedding_backward(context.batch.inputs, dy, context.gradients[kTable],
                       context.accumulate[kTable], context.stream);
  }

  /// A lookup multiplies nothing.
  double forward_flops(const BatchShape& /*shape*/) const override { return 0.0; }

 private:
  bool has_positions() const { return !spec_.positions_name.empty(); }

  Shape output_shape(const BatchShape& shape) const {
    return {shape.samples, shape.sequence, spec_.hidden_size};
  }

  Tensor masked_gradient(Workspace& workspace, DType dtype, Shape shape) const {
    return dropout_.drops() ? workspace.take(dtype, shape) : Tensor{};
  }

  TokenEmbeddingSpec spec_;
  DropoutLayer dropout_;
};

}  // namespace

std::unique_ptr<Unit> make_token_embedding(const TokenEmbeddingSpec& spec) {
  return std::make_unique<TokenEmbedding>(spec);
}

}  // namespace sherd
