#include "models/llama.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/head_norm.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "models/causal_lm_head.h"
#include "models/layers.h"
#include "models/token_embedding.h"
#include "models/workspace.h"

// Kept from forward to backward is what a product or the attention made, and with QK-norm the heads
// before it. What is elementwise (normed rows and their statistics, SwiGLU) is made again in
// backward's workspace: 2C + I elements a token less for each block, a third of a Llama 3 8B's, for
// three passes over memory.

namespace sherd {
namespace {

enum Saved : std::size_t {
  kQkv,
  kAttended,
  kLse,
  kMiddle,
  kGateUp,
  kSavedCount,
  kQueryHeads = kSavedCount,  // from here on only with QK-norm
  kQueryRstd,
  kKeyHeads,
  kKeyRstd,
  kSavedCountWithHeadNorm
};

/// The RMS norm and rotation of the query or key heads inside a packed qkv tensor.
class HeadNorm {
 public:
  HeadNorm(const std::string& name, int first_head, int heads, std::int64_t head_dim, float epsilon,
           std::vector<ParameterSpec>& parameters)
      : first_head_(first_head), heads_(heads), epsilon_(epsilon), weight_(parameters.size()) {
    parameters.push_back(vector_parameter(name + ".weight", head_dim, {.kind = Init::Kind::ones}));
  }

  void forward(const ForwardContext& context, const Tensor& qkv, const Tensor& heads,
               const Tensor& rstd, const RopeSpec& rope) const {
    head_norm_forward(qkv, first_head_, heads_, context.parameters[weight_], by_token(heads),
                      flat(rstd), epsilon_, rope, context.stream);
  }

  void backward(const BackwardContext& context, const Tensor& dqkv, const Tensor& heads,
                const Tensor& rstd, const RopeSpec& rope) const {
    head_norm_backward(dqkv, first_head_, heads_, context.parameters[weight_], by_token(heads),
                       flat(rstd), context.gradients[weight_], context.accumulate[weight_], rope,
                       context.stream);
  }

 private:
  static Tensor by_token(const Tensor& heads) {
    return heads.view({heads.dim(0) * heads.dim(1), heads.dim(2), heads.dim(3)});
  }
  static Tensor flat(const Tensor& rstd) { return rstd.view({rstd.numel()}); }

  int first_head_;
  int heads_;
  float epsilon_;
  std::size_t weight_;
};

struct Dimensions {
  explicit Dimensions(const ModelConfig& config)
      : hidden(config.hidden_size),
        inner(config.intermediate_size),
        head_dim(config.head_dim),
        heads(config.num_attention_heads),
        kv_heads(config.num_key_value_heads) {}
  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  int qkv_heads() const { return heads + 2 * kv_heads; }

  std::int64_t hidden;
  std::int64_t inner;
  std::int64_t head_dim;
  int heads;
  int kv_heads;
};

LinearSpec projection(const ModelConfig& config, const std::string& name, std::int64_t in,
                      std::int64_t out, bool bias = false, std::vector<ParameterPart> parts = {}) {
  return {.name = name,
          .in = in,
          .out = out,
          .bias = bias,
          .weight_init = {.kind = Init::Kind::normal, .scale = config.initializer_range},
          .bias_init = {.kind = Init::Kind::zeros},
          .parts = std::move(parts)};
}

LinearSpec qkv_projection(const ModelConfig& config, const std::string& prefix) {
  const Dimensions d(config);
  return projection(config, prefix + "qkv_proj", d.hidden, d.qkv_width(), config.attention_bias,
                    {{prefix + "q_proj", d.query_width()},
                     {prefix + "k_proj", d.kv_width()},
                     {prefix + "v_proj", d.kv_width()}});
}

LinearSpec gate_up_projection(const ModelConfig& config, const std::string& prefix) {
  const Dimensions d(config);
  return projection(config, prefix + "gate_up_proj", d.hidden, 2 * d.inner, false,
                    {{prefix + "gate_proj", d.inner}, {prefix + "up_proj", d.inner}});
}

std::optional<HeadNorm> head_norm(const ModelConfig& config, const std::string& name,
                                  int first_head, int heads,
                                  std::vector<ParameterSpec>& parameters) {
  if (!config.qk_norm) return std::nullopt;
  return HeadNorm(name, first_head, heads, config.head_dim, config.norm_epsilon, parameters);
}

class LlamaBlock final : public Unit {
 public:
  LlamaBlock(const ModelConfig& config, int layer)
      : LlamaBlock(config, "block." + std::to_string(layer),
                   "model.layers." + std::to_string(layer) + ".") {}

  LlamaBlock(const ModelConfig& config, std::string name, const std::string& prefix)
      : name_(std::move(name)),
        d_(config),
        rope_(config.rope),
        input_norm_(NormKind::rms, prefix + "input_layernorm", d_.hidden, config.norm_epsilon,
                    parameters_),
        qkv_proj_(qkv_projection(config, prefix + "self_attn."), parameters_),
        q_norm_(head_norm(config, prefix + "self_attn.q_norm", 0, d_.heads, parameters_)),
        k_norm_(head_norm(config, prefix + "self_attn.k_norm", d_.heads, d_.kv_heads, parameters_)),
        o_proj_(projection(config, prefix + "self_attn.o_proj", d_.query_width(), d_.hidden),
                parameters_),
        post_attention_norm_(NormKind::rms, prefix + "post_attention_layernorm", d_.hidden,
                             config.norm_epsilon, parameters_),
        gate_up_proj_(gate_up_projection(config, prefix + "mlp."), parameters_),
        down_proj_(projection(config, prefix + "mlp.down_proj", d_.inner, d_.hidden), parameters_) {
  }

  std::string_view name() const override { return name_; }
  std::vector<ParameterSpec> parameters() const override { return parameters_; }

  Footprint footprint(const BatchShape& shape, const Precision& precision) const override {
    const DType compute = precision.compute;
    Footprint f;
    f.output = {compute, {shape.samples, shape.sequence, d_.hidden}};
    f.saved = saved(shape, compute);
    Workspace forward;
    norm_scratch(forward, shape, compute);
    mlp_scratch(forward, shape, compute);
    f.forward_workspace_bytes = forward.peak_bytes();
    Workspace backward;
    mlp_scratch(backward, shape, compute);
    attention_scratch(backward, shape, compute);
    f.backward_workspace_bytes = backward.peak_bytes();
    f.scratch_bytes = scratch_bytes(shape, compute);
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
    return qkv_proj_.flops(rows) + o_proj_.flops(rows) + gate_up_proj_.flops(rows) +
           down_proj_.flops(rows) + causal_attention_flops(shape, d_.heads, d_.head_dim);
  }

 private:
  struct NormScratch {
    Tensor normed;
    NormStatistics statistics;
  };
  struct MlpScratch {
    NormScratch norm;
    Tensor activated;
  };
  struct AttentionScratch {
    Tensor dqkv;
    Tensor dattended;
    NormScratch norm;
  };

  std::int64_t scratch_bytes(const BatchShape& shape, DType compute) const {
    const std::int64_t rows = shape.tokens();
    return std::max({linear_scratch_bytes(), bias_backward_scratch_bytes(rows, d_.qkv_width()),
                     rms_norm_backward_scratch_bytes(rows, d_.hidden),
                     head_norm_backward_scratch_bytes(rows * d_.heads, d_.head_dim),
                     attention_scratch_bytes(shape.samples, shape.sequence, d_.head_dim, compute,
                                             attention_spec())});
  }

  AttentionSpec attention_spec() const {
    return {.heads = d_.heads,
            .kv_heads = d_.kv_heads,
            .causal = true,
            .scale = 1.0f / std::sqrt(static_cast<float>(d_.head_dim))};
  }

  std::vector<TensorSpec> saved(const BatchShape& shape, DType compute) const {
    const auto [B, T] = shape;
    std::vector<TensorSpec> specs(q_norm_ ? kSavedCountWithHeadNorm : kSavedCount);
    specs[kQkv] = {compute, {B, T, d_.qkv_heads(), d_.head_dim}};
    specs[kAttended] = {compute, {B, T, d_.heads, d_.head_dim}};
    specs[kLse] = {DType::f32, {B, d_.heads, T}};
    specs[kMiddle] = {compute, {B, T, d_.hidden}};
    specs[kGateUp] = {compute, {B, T, 2 * d_.inner}};
    if (!q_norm_) return specs;
    specs[kQueryHeads] = {compute, {B, T, d_.heads, d_.head_dim}};
    specs[kQueryRstd] = {DType::f32, {B, T, d_.heads}};
    specs[kKeyHeads] = {compute, {B, T, d_.kv_heads, d_.head_dim}};
    specs[kKeyRstd] = {DType::f32, {B, T, d_.kv_heads}};
    return specs;
  }

  // Scratch functions start at the workspace's first byte; what is dead by the time that something
  // else is written shares its memory.

  NormScratch norm_scratch(Workspace& workspace, const BatchShape& shape, DType compute) const {
    const std::int64_t rows = shape.tokens();
    return {workspace.take(compute, {rows, d_.hidden}), input_norm_.statistics(workspace, rows)};
  }

  /// Forward needs the normed rows first, backward the activation.
  MlpScratch mlp_scratch(Workspace& workspace, const BatchShape& shape, DType compute) const {
    MlpScratch s;
    workspace.rewind(0);
    s.norm = norm_scratch(workspace, shape, compute);
    workspace.rewind(0);
    s.activated = workspace.take(compute, {shape.tokens(), d_.inner});
    return s;
  }

  AttentionScratch attention_scratch(Workspace& workspace, const BatchShape& shape,
                                     DType compute) const {
    const auto [B, T] = shape;
    AttentionScratch s;
    workspace.rewind(0);
    s.dqkv = workspace.take(compute, {B, T, d_.qkv_heads(), d_.head_dim});
    const std::int64_t after_dqkv = workspace.mark();
    s.dattended = workspace.take(compute, {B, T, d_.heads, d_.head_dim});
    workspace.rewind(after_dqkv);
    s.norm = norm_scratch(workspace, shape, compute);
    return s;
  }

  Tensor query_rows(const Tensor& attended) const {
    return attended.view({attended.dim(0) * attended.dim(1), d_.query_width()});
  }
  Tensor qkv_rows(const Tensor& qkv) const {
    return qkv.view({qkv.dim(0) * qkv.dim(1), d_.qkv_width()});
  }

  void forward_attention(const ForwardContext& context) const {
    Workspace workspace(context.workspace);
    const NormScratch s = norm_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& qkv = context.saved[kQkv];
    const Tensor& attended = context.saved[kAttended];
    const Tensor& middle = context.saved[kMiddle];
    Stream& stream = context.stream;
    input_norm_.forward(context.parameters, context.input, s.normed, s.statistics, stream);
    qkv_proj_.forward(context.parameters, s.normed, qkv_rows(qkv), stream);
    if (q_norm_) {
      q_norm_->forward(context, qkv, context.saved[kQueryHeads], context.saved[kQueryRstd], rope_);
      k_norm_->forward(context, qkv, context.saved[kKeyHeads], context.saved[kKeyRstd], rope_);
    } else {
      rope(qkv, 0, d_.heads + d_.kv_heads, rope_, RopeDirection::forward, stream);
    }
    attention_forward(qkv, context.batch.mask, attended, context.saved[kLse], attention_spec(),
                      stream);
    o_proj_.forward(context.parameters, query_rows(attended), context.input, middle, stream);
  }

  void forward_mlp(const ForwardContext& context) const {
    Workspace workspace(context.workspace);
    const MlpScratch s = mlp_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& middle = context.saved[kMiddle];
    const Tensor gate_up = as_rows(context.saved[kGateUp]);
    post_attention_norm_.forward(context.parameters, middle, s.norm.normed, s.norm.statistics,
                                 context.stream);
    gate_up_proj_.forward(context.parameters, s.norm.normed, gate_up, context.stream);
    swiglu_forward(gate_up, s.activated, context.stream);
    down_proj_.forward(context.parameters, s.activated, middle, context.output, context.stream);
  }

  void backward_mlp(const BackwardContext& context) const {
    Workspace workspace(context.workspace);
    const MlpScratch s = mlp_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& middle = context.saved[kMiddle];
    const Tensor gate_up = as_rows(context.saved[kGateUp]);
    Stream& stream = context.stream;

    swiglu_forward(gate_up, s.activated, stream);
    down_proj_.backward_parameters(context, s.activated, context.output_gradient);
    // Gradients take the place of what they are gradients of.
    down_proj_.backward_input(context, context.output_gradient, s.activated);
    swiglu_backward(s.activated, gate_up, gate_up, stream);

    post_attention_norm_.forward(context.parameters, middle, s.norm.normed, s.norm.statistics,
                                 stream);
    gate_up_proj_.backward_parameters(context, s.norm.normed, gate_up);
    gate_up_proj_.backward_input(context, gate_up, s.norm.normed);
    post_attention_norm_.backward(context, s.norm.normed, middle, s.norm.statistics,
                                  context.output_gradient, context.input_gradient);
  }

  void backward_attention(const BackwardContext& context) const {
    Workspace workspace(context.workspace);
    const AttentionScratch s =
        attention_scratch(workspace, context.batch.shape, context.input.dtype());
    const Tensor& attended = context.saved[kAttended];
    Stream& stream = context.stream;

    o_proj_.backward_parameters(context, query_rows(attended), context.input_gradient);
    o_proj_.backward_input(context, context.input_gradient, query_rows(s.dattended));
    attention_backward(s.dattended, context.saved[kQkv], context.batch.mask, attended,
                       context.saved[kLse], s.dqkv, attention_spec(), stream);
    if (q_norm_) {
      q_norm_->backward(context, s.dqkv, context.saved[kQueryHeads], context.saved[kQueryRstd],
                        rope_);
      k_norm_->backward(context, s.dqkv, context.saved[kKeyHeads], context.saved[kKeyRstd], rope_);
    } else {
      rope(s.dqkv, 0, d_.heads + d_.kv_heads, rope_, RopeDirection::backward, stream);
    }

    input_norm_.forward(context.parameters, context.input, s.norm.normed, s.norm.statistics,
                        stream);
    qkv_proj_.backward_parameters(context, s.norm.normed, qkv_rows(s.dqkv));
    qkv_proj_.backward_input(context, qkv_rows(s.dqkv), s.norm.normed);
    input_norm_.backward(context, s.norm.normed, context.input, s.norm.statistics,
                         context.input_gradient, context.input_gradient);
  }

  std::string name_;
  Dimensions d_;
  RopeSpec rope_;
  std::vector<ParameterSpec> parameters_;
  NormLayer input_norm_;
  LinearLayer qkv_proj_;
  std::optional<HeadNorm> q_norm_;
  std::optional<HeadNorm> k_norm_;
  LinearLayer o_proj_;
  NormLayer post_attention_norm_;
  LinearLayer gate_up_proj_;
  LinearLayer down_proj_;
};

}  // namespace

std::vector<std::unique_ptr<Unit>> make_llama_units(const ModelConfig& config) {
  const std::string table = "model.embed_tokens.weight";
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(make_token_embedding({.table_name = table,
                                        .vocab_size = config.vocab_size,
                                        .hidden_size = config.hidden_size,
                                        .init_std = config.initializer_range}));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    units.push_back(std::make_unique<LlamaBlock>(config, layer));
  }
  units.push_back(make_causal_lm_head({.norm = NormKind::rms,
                                       .norm_name = "model.norm",
                                       .norm_epsilon = config.norm_epsilon,
                                       .hidden_size = config.hidden_size,
                                       .vocab_size = config.vocab_size,
                                       .tied_to = config.tie_word_embeddings ? table : "",
                                       .init_std = config.initializer_range}));
  return units;
}

}  // namespace sherd
