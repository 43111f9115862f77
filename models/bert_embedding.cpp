#include "models/bert_embedding.h"

#include <algorithm>

#include "kernels/embedding.h"
#include "models/layers.h"
#include "models/workspace.h"

namespace sherd {
namespace {

enum Parameter : std::size_t { kWords, kPositions, kTypes };
constexpr int kEmbeddingDropout = 0;

class BertEmbedding final : public Unit {
 public:
  explicit BertEmbedding(const BertEmbeddingSpec& spec)
      : width_(spec.hidden_size),
        parameters_(tables(spec)),
        norm_(NormKind::layer, spec.prefix + "LayerNorm", width_, spec.norm_epsilon, parameters_),
        dropout_(spec.dropout, kEmbeddingDropout) {}

  std::string_view name() const override { return "embedding"; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const std::int64_t rows = shape.tokens();
    Workspace backward;
    scratch(backward, precision.compute, shape);
    Footprint f;
    f.output = {precision.compute, output_shape(shape)};
    f.saved.assign(2, {DType::f32, {rows}});
    f.backward_workspace_bytes = backward.peak_bytes();
    f.scratch_bytes =
        std::max({embedding_backward_scratch_bytes(rows), norm_.scratch_bytes(rows),
                  position_backward_scratch_bytes(shape.samples, shape.sequence, width_),
                  position_backward_scratch_bytes(rows, 1, width_)});
    return f;
  }

  void forward(const ForwardContext& context) const override {
    const Tensor& y = context.output;
    add_up(context.batch, context.parameters, y, context.stream);
    norm_.forward(context.parameters, y, y, statistics(context.saved), context.stream);
    if (!context.training || !dropout_.drops()) return;
    dropout_.apply(context.batch, context.rng, y, y, context.stream);
  }

  void backward(const BackwardContext& context) const override {
    Workspace workspace(context.workspace);
    const Scratch s = scratch(workspace, context.output_gradient.dtype(), context.batch.shape);
    add_up(context.batch, context.parameters, s.sum, context.stream);
    Tensor dy = context.output_gradient;
    if (dropout_.drops()) {
      dropout_.apply(context.batch, context.rng, dy, s.gradient, context.stream);
      dy = s.gradient;
    }
    norm_.backward(context, dy, s.sum, statistics(context.saved), {}, s.gradient);
    position_backward(s.gradient, context.gradients[kPositions], context.accumulate[kPositions],
                      context.stream);
    backward_types(context, s.gradient);
    embedding_backward(context.batch.inputs, s.gradient, context.gradients[kWords],
                       context.accumulate[kWords], context.stream);
  }

  /// A lookup multiplies nothing.
  double forward_flops(const BatchShape& /*shape*/) const override { return 0.0; }

 private:
  struct Scratch {
    Tensor sum;  // what the norm is of, made again
    Tensor gradient;
  };

  static std::vector<ParameterSpec> tables(const BertEmbeddingSpec& spec) {
    const Init init{.kind = Init::Kind::normal, .scale = spec.init_std};
    const auto table = [&](const char* name, std::int64_t rows) {
      return matrix_parameter(spec.prefix + name + ".weight", {rows, spec.hidden_size}, init);
    };
    return {table("word_embeddings", spec.vocab_size),
            table("position_embeddings", spec.max_positions),
            table("token_type_embeddings", spec.token_types)};
  }

  Shape output_shape(const BatchShape& shape) const {
    return {shape.samples, shape.sequence, width_};
  }

  Scratch scratch(Workspace& workspace, DType compute, const BatchShape& shape) const {
    return {workspace.take(compute, output_shape(shape)),
            workspace.take(compute, output_shape(shape))};
  }

  static NormStatistics statistics(std::span<const Tensor> saved) { return {saved[0], saved[1]}; }

  /// Each row as a sample of one token: what is at position 0 is all rows'.
  Tensor one_position(const Tensor& x) const { return x.view({x.numel() / width_, 1, width_}); }

  void add_up(const BatchView& batch, std::span<const Tensor> parameters, const Tensor& sum,
              Stream& stream) const {
    embedding_forward(batch.inputs, parameters[kWords], sum, Accumulate::no, stream);
    position_forward(parameters[kPositions], sum, stream);
    if (batch.token_types.defined()) {
      embedding_forward(batch.token_types, parameters[kTypes], sum, Accumulate::yes, stream);
    } else {
      position_forward(parameters[kTypes], one_position(sum), stream);
    }
  }

  void backward_types(const BackwardContext& context, const Tensor& gradient) const {
    const Tensor& types = context.batch.token_types;
    if (types.defined()) {
      embedding_backward(types, gradient, context.gradients[kTypes], context.accumulate[kTypes],
                         context.stream);
    } else {
      position_backward(one_position(gradient), context.gradients[kTypes],
                        context.accumulate[kTypes], context.stream);
    }
  }

  std::int64_t width_;
  std::vector<ParameterSpec> parameters_;
  NormLayer norm_;
  DropoutLayer dropout_;
};

}  // namespace

std::unique_ptr<Unit> make_bert_embedding(const BertEmbeddingSpec& spec) {
  return std::make_unique<BertEmbedding>(spec);
}

}  // namespace sherd
