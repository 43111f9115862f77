#include "models/gpt2.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "models/causal_lm_head.h"
#include "models/layers.h"
#include "models/token_embedding.h"
#include "models/workspace.h"

// Kept from forward to backward is what a product or the attention made. What is elementwise
// (normed rows and their statistics, GELU) is made again in backward's workspace: 2C + I elements a
// token less for each block, for three passes over memory.

namespace sherd {
namespace {

enum Saved : std::size_t { kQkv, kAttended, kLse, kMiddle, kInner, kSavedCount };
enum DropoutSite : int { kAttentionDropout, kMlpDropout };

LinearSpec conv1d(const std::string& name, std::int64_t in, std::int64_t out, float init_std) {
  return {.name = name,
          .in = in,
          .out = out,
          .bias = true,
          .layout = WeightLayout::in_out,
          .weight_init = {.kind = Init::Kind::normal, .scale = init_std},
          .bias_init = {.kind = Init::Kind::zeros}};
}

/// Projections onto the residual path start smaller, by the number of them.
float residual_std(const ModelConfig& config) {
  return config.initializer_range / std::sqrt(2.0f * static_cast<float>(config.num_hidden_layers));
}

class Gpt2Block final : public Unit {
 public:
  Gpt2Block(const ModelConfig& config, int layer)
      : Gpt2Block(config, "block." + std::to_string(layer),
                  "transformer.h." + std::to_string(layer) + ".") {}

  Gpt2Block(const ModelConfig& config, std::string name, const std::string& prefix)
      : name_(std::move(name)),
        hidden_(config.hidden_size),
        inner_(config.intermediate_size),
        heads_(config.num_attention_heads),
        activation_(config.activation),
        dropout_(config.residual_dropout),
        ln_1_(NormKind::layer, prefix + "ln_1", hidden_, config.norm_epsilon, parameters_),
        c_attn_(conv1d(prefix + "attn.c_attn", hidden_, 3 * hidden_, config.initializer_range),
                parameters_),
        attn_c_proj_(conv1d(prefix + "attn.c_proj", hidden_, hidden_, residual_std(config)),
                     parameters_),
        ln_2_(NormKind::layer, prefix + "ln_2", hidden_, config.norm_epsilon, parameters_),
        c_fc_(conv1d(prefix + "mlp.c_fc", hidden_, inner_, config.initializer_range), parameters_),
        mlp_c_proj_(conv1d(prefix + "mlp.c_proj", inner_, hidden_, residual_std(config)),
                    parameters_) {}

  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    const auto [B, T] = shape;
    Footprint f;
    f.output = {compute, {B, T, hidden_}};
    f.saved.resize(kSavedCount);
    f.saved[kQkv] = {compute, {B, T, qkv_heads(), head_dim()}};
    f.saved[kAttended] = {compute, {B, T, heads_, head_dim()}};
    f.saved[kLse] = {DType::f32, {B, heads_, T}};
    f.saved[kMiddle] = {compute, {B, T, hidden_}};
    f.saved[kInner] = {compute, {B, T, inner_}};

    Workspace forward;
    norm_scratch(forward, shape, compute);
    mlp_scratch(forward, shape, compute);
    f.forward_workspace_bytes = forward.peak_bytes();
    Workspace backward;
    mlp_scratch(backward, shape, compute);
    attention_scratch(backward, shape, compute);
    f.backward_workspace_bytes = backward.peak_bytes();
    f.scratch_bytes =
        std::max({linear_scratch_bytes(), bias_backward_scratch_bytes(shape.tokens(), 3 * hidden_),
                  bias_backward_scratch_bytes(shape.tokens(), inner_),
                  layer_norm_backward_scratch_bytes(shape.tokens(), hidden_),
                  attention_scratch_bytes(B, T, head_dim(), compute, attention_spec())});
    return f;
  }

  void forward(const ForwardContext& context) const override {
    forward_attention(context);
    forward_mlp(context);
  }

  void backward(const BackwardContext& context) const override {
    // input_gradient is between the halves the gradient of what lies between them, kMiddle.
    backward_mlp(context);
    backward_attention(context);
  }

  double forward_flops(const BatchShape& shape) const override {
    const std::int64_t rows = shape.tokens();
    return c_attn_.flops(rows) + attn_c_proj_.flops(rows) + c_fc_.flops(rows) +
           mlp_c_proj_.flops(rows) + causal_attention_flops(shape, heads_, head_dim());
  }

 private:
  struct NormScratch {
    Tensor normed;
    NormStatistics statistics;
  };
  struct MlpScratch {
    Tensor masked;  // output gradient behind the dropout
    Tensor activated;
    NormScratch norm;
  };
  struct AttentionScratch {
    Tensor masked;
    Tensor dqkv;
    Tensor dattended;
    NormScratch norm;
  };

  std::int64_t head_dim() const { return hidden_ / heads_; }
  std::int64_t qkv_heads() const { return 3 * std::int64_t{heads_}; }

  AttentionSpec attention_spec() const {
    return {.heads = heads_,
            .kv_heads = heads_,
            .causal = true,
            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim()))};
  }

  // Scratch functions start at the workspace's first byte; what is dead by the time that something
  // else is written shares its memory.

  NormScratch norm_scratch(Workspace& workspace, const BatchShape& shape, DType compute) const {
    const std::int64_t rows = shape.tokens();
    return {workspace.take(compute, {rows, hidden_}), ln_1_.statistics(workspace, rows)};
  }

  MlpScratch mlp_scratch(Workspace& workspace, const BatchShape& shape, DType compute) const {
    MlpScratch s;
    workspace.rewind(0);
    s.activated = workspace.take(compute, {shape.tokens(), inner_});
    const std::int64_t after_activated = workspace.mark();
    if (dropout_ > 0.0f) s.masked = workspace.take(compute, {shape.tokens(), hidden_});
    workspace.rewind(after_activated);
    s.norm = norm_scratch(workspace, shape, compute);
    return s;
  }

  AttentionScratch attention_scratch(Workspace& workspace, const BatchShape& shape,
                                     DType compute) const {
    AttentionScratch s;
    workspace.rewind(0);
    s.masked = workspace.take(compute, {shape.tokens(), hidden_});
    workspace.rewind(0);
    s.dqkv = workspace.take(compute, {shape.samples, shape.sequence, qkv_heads(), head_dim()});
    const std::int64_t after_dqkv = workspace.mark();
    s.dattended = workspace.take(compute, {shape.samples, shape.sequence, heads_, head_dim()});
    workspace.rewind(after_dqkv);
    s.norm = norm_scratch(workspace, shape, compute);
    return s;
  }

  void forward_attention(const ForwardContext& context) const {
    Workspace workspace(context.workspace);
    const NormScratch s = norm_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& qkv = context.saved[kQkv];
    const Tensor& attended = context.saved[kAttended];
    const Tensor& middle = context.saved[kMiddle];
    ln_1_.forward(context.parameters, context.input, s.normed, s.statistics, context.stream);
    c_attn_.forward(context.parameters, s.normed,
                    qkv.view({context.batch.shape.tokens(), 3 * hidden_}), context.stream);
    attention_forward(qkv, context.batch.mask, attended, context.saved[kLse], attention_spec(),
                      context.stream);
    forward_onto_residual(context, attn_c_proj_, attended.view(middle.shape()), context.input,
                          middle, kAttentionDropout);
  }

  void forward_mlp(const ForwardContext& context) const {
    Workspace workspace(context.workspace);
    const MlpScratch s = mlp_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& middle = context.saved[kMiddle];
    const Tensor& inner = context.saved[kInner];
    ln_2_.forward(context.parameters, middle, s.norm.normed, s.norm.statistics, context.stream);
    c_fc_.forward(context.parameters, s.norm.normed, inner, context.stream);
    activation_forward(inner.view(s.activated.shape()), s.activated, activation_, context.stream);
    forward_onto_residual(context, mlp_c_proj_, s.activated, middle, context.output, kMlpDropout);
  }

  void backward_mlp(const BackwardContext& context) const {
    Workspace workspace(context.workspace);
    const MlpScratch s = mlp_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& middle = context.saved[kMiddle];
    const Tensor inner = as_rows(context.saved[kInner]);
    Stream& stream = context.stream;

    const Tensor dy = backward_dropout(context, context.output_gradient, s.masked, kMlpDropout);
    activation_forward(inner, s.activated, activation_, stream);
    mlp_c_proj_.backward_parameters(context, s.activated, dy);
    const Tensor& dinner = s.activated;  // the activation is dead: its gradient takes its place
    mlp_c_proj_.backward_input(context, dy, dinner);
    activation_backward(dinner, inner, dinner, activation_, stream);

    ln_2_.forward(context.parameters, middle, s.norm.normed, s.norm.statistics, stream);
    c_fc_.backward_parameters(context, s.norm.normed, dinner);
    c_fc_.backward_input(context, dinner, s.norm.normed);
    ln_2_.backward(context, s.norm.normed, middle, s.norm.statistics, context.output_gradient,
                   context.input_gradient);
  }

  void backward_attention(const BackwardContext& context) const {
    Workspace workspace(context.workspace);
    const AttentionScratch s =
        attention_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& attended = context.saved[kAttended];
    const Tensor attended_rows = as_rows(attended.view(context.input.shape()));
    Stream& stream = context.stream;

    const Tensor dy =
        backward_dropout(context, context.input_gradient, s.masked, kAttentionDropout);
    attn_c_proj_.backward_parameters(context, attended_rows, dy);
    attn_c_proj_.backward_input(context, dy, s.dattended.view(context.input.shape()));
    attention_backward(s.dattended, context.saved[kQkv], context.batch.mask, attended,
                       context.saved[kLse], s.dqkv, attention_spec(), stream);

    const Tensor dqkv = s.dqkv.view({context.batch.shape.tokens(), 3 * hidden_});
    ln_1_.forward(context.parameters, context.input, s.norm.normed, s.norm.statistics, stream);
    c_attn_.backward_parameters(context, s.norm.normed, dqkv);
    c_attn_.backward_input(context, dqkv, s.norm.normed);
    ln_1_.backward(context, s.norm.normed, context.input, s.norm.statistics, context.input_gradient,
                   context.input_gradient);
  }

  void drop(const BatchView& batch, RngKey rng, DropoutSite site, const Tensor& x, const Tensor& y,
            Stream& stream) const {
    const std::int64_t first = batch.first_sample * batch.shape.sequence * hidden_;
    dropout(x, y, dropout_, dropout_site(rng, site), static_cast<std::uint64_t>(first), stream);
  }

  /// y = residual + dropout(layer(x)).
  void forward_onto_residual(const ForwardContext& context, const LinearLayer& layer,
                             const Tensor& x, const Tensor& residual, const Tensor& y,
                             DropoutSite site) const {
    if (!context.training || dropout_ == 0.0f) {
      return layer.forward(context.parameters, x, residual, y, context.stream);
    }
    layer.forward(context.parameters, x, y, context.stream);
    drop(context.batch, context.rng, site, y, y, context.stream);
    add(residual, y, y, context.stream);
  }

  /// The gradient in front of the dropout: `dy` itself when nothing is dropped.
  Tensor backward_dropout(const BackwardContext& context, const Tensor& dy, const Tensor& masked,
                          DropoutSite site) const {
    if (dropout_ == 0.0f) return dy;
    drop(context.batch, context.rng, site, dy, masked, context.stream);
    return masked;
  }

  std::string name_;
  std::int64_t hidden_;
  std::int64_t inner_;
  int heads_;
  Activation activation_;
  float dropout_;
  std::vector<ParameterSpec> parameters_;
  NormLayer ln_1_;
  LinearLayer c_attn_;
  LinearLayer attn_c_proj_;
  NormLayer ln_2_;
  LinearLayer c_fc_;
  LinearLayer mlp_c_proj_;
};

}  // namespace

std::vector<std::unique_ptr<Unit>> make_gpt2_units(const ModelConfig& config) {
  const std::string table = "transformer.wte.weight";
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(make_token_embedding({.table_name = table,
                                        .vocab_size = config.vocab_size,
                                        .hidden_size = config.hidden_size,
                                        .positions_name = "transformer.wpe.weight",
                                        .max_positions = config.max_position_embeddings,
                                        .init_std = config.initializer_range,
                                        .dropout = config.embedding_dropout}));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    units.push_back(std::make_unique<Gpt2Block>(config, layer));
  }
  units.push_back(make_causal_lm_head({.norm = NormKind::layer,
                                       .norm_name = "transformer.ln_f",
                                       .norm_epsilon = config.norm_epsilon,
                                       .hidden_size = config.hidden_size,
                                       .vocab_size = config.vocab_size,
                                       .tied_to = config.tie_word_embeddings ? table : "",
                                       .init_std = config.initializer_range}));
  return units;
}

}  // namespace sherd
