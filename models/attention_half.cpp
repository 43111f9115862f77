#include "models/attention_half.h"

#include <algorithm>
#include <cmath>

#include "kernels/head_norm.h"

namespace sherd {
namespace {

enum Saved : std::size_t { kQkv, kAttended, kLse, kSavedCount };

/// `tensor` [B, T, heads, head_dim] with a row for each token.
Tensor by_token(const Tensor& tensor) {
  return tensor.view({tensor.dim(0) * tensor.dim(1), tensor.dim(2) * tensor.dim(3)});
}
/// The same with a matrix for each token.
Tensor heads_by_token(const Tensor& tensor) {
  return tensor.view({tensor.dim(0) * tensor.dim(1), tensor.dim(2), tensor.dim(3)});
}
Tensor flat(const Tensor& tensor) { return tensor.view({tensor.numel()}); }

}  // namespace

AttentionHalf::AttentionHalf(const TransformerBlockSpec& spec,
                             std::vector<ParameterSpec>& parameters)
    : hidden_(spec.hidden_size),
      head_dim_(spec.head_dim),
      heads_(spec.heads),
      kv_heads_(spec.kv_heads),
      causal_(spec.causal),
      norm_epsilon_(spec.norm_epsilon),
      rope_(spec.rope),
      qkv_(spec.norm, spec.attention_norm, spec.norm_epsilon, spec.qkv, parameters),
      head_norms_(head_norms(spec, parameters)),
      out_(spec.attention_out, spec.dropout, /*site=*/0, parameters) {}

std::vector<AttentionHalf::HeadNorm> AttentionHalf::head_norms(
    const TransformerBlockSpec& spec, std::vector<ParameterSpec>& parameters) {
  std::vector<HeadNorm> norms;
  const auto add = [&](const std::string& name, int first_head, int heads) {
    if (name.empty()) return;
    norms.push_back({first_head, heads, parameters.size(), kSavedCount + 2 * norms.size()});
    parameters.push_back(
        vector_parameter(name + ".weight", spec.head_dim, {.kind = Init::Kind::ones}));
  };
  add(spec.query_norm, 0, spec.heads);
  add(spec.key_norm, spec.heads, spec.kv_heads);
  return norms;
}

std::vector<TensorSpec> AttentionHalf::saved(const BatchShape& shape, DType compute) const {
  const auto [B, T] = shape;
  std::vector<TensorSpec> specs(kSavedCount);
  specs[kQkv] = {compute, {B, T, qkv_heads(), head_dim_}};
  specs[kAttended] = {compute, {B, T, heads_, head_dim_}};
  specs[kLse] = {DType::f32, {B, heads_, T}};
  for (const HeadNorm& norm : head_norms_) {
    specs.push_back({compute, {B, T, norm.heads, head_dim_}});
    specs.push_back({DType::f32, {B, T, norm.heads}});
  }
  return specs;
}

TensorSpec AttentionHalf::middle(const BatchShape& shape, DType compute) const {
  return {compute, {shape.samples, shape.sequence, hidden_}};
}

AttentionSpec AttentionHalf::attention_spec(bool repeatable) const {
  return {.heads = heads_,
          .kv_heads = kv_heads_,
          .causal = causal_,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim_)),
          .deterministic = repeatable};
}

std::int64_t AttentionHalf::scratch_bytes(const BatchShape& shape,
                                          const Precision& precision) const {
  const std::int64_t rows = shape.tokens();
  return std::max(
      {qkv_.scratch_bytes(rows), out_.scratch_bytes(rows),
       head_norms_.empty() ? 0 : head_norm_backward_scratch_bytes(rows * heads_, head_dim_),
       attention_scratch_bytes(shape.samples, shape.sequence, head_dim_, precision.compute,
                               attention_spec(precision.repeatable))});
}

NormScratch AttentionHalf::forward_scratch(Workspace& workspace, const BatchShape& shape,
                                           DType compute) const {
  workspace.rewind(0);
  return qkv_.scratch(workspace, shape.tokens(), compute);
}

/// What is dead by the time that something else is written shares its memory.
AttentionHalf::BackwardScratch AttentionHalf::backward_scratch(Workspace& workspace,
                                                               const BatchShape& shape,
                                                               DType compute) const {
  const auto [B, T] = shape;
  BackwardScratch s;
  workspace.rewind(0);
  if (out_.drops()) s.masked = workspace.take(compute, {shape.tokens(), hidden_});
  const std::int64_t after_masked = workspace.mark();
  workspace.rewind(0);
  s.dqkv = workspace.take(compute, {B, T, qkv_heads(), head_dim_});
  const std::int64_t after_dqkv = workspace.mark();
  workspace.rewind(std::max(after_masked, after_dqkv));
  s.dattended = workspace.take(compute, {B, T, heads_, head_dim_});
  workspace.rewind(after_dqkv);
  s.norm = qkv_.scratch(workspace, shape.tokens(), compute);
  return s;
}

void AttentionHalf::rotate(const ForwardContext& context) const {
  const Tensor& qkv = context.saved[kQkv];
  for (const HeadNorm& norm : head_norms_) {
    head_norm_forward(qkv, norm.first_head, norm.heads, context.parameters[norm.weight],
                      heads_by_token(context.saved[norm.saved]),
                      flat(context.saved[norm.saved + 1]), norm_epsilon_, *rope_, context.stream);
  }
  if (!head_norms_.empty() || !rope_) return;
  rope(qkv, 0, heads_ + kv_heads_, *rope_, RopeDirection::forward, context.stream);
}

void AttentionHalf::rotate_back(const BackwardContext& context, const Tensor& dqkv) const {
  for (const HeadNorm& norm : head_norms_) {
    head_norm_backward(dqkv, norm.first_head, norm.heads, context.parameters[norm.weight],
                       heads_by_token(context.saved[norm.saved]),
                       flat(context.saved[norm.saved + 1]), context.gradients[norm.weight],
                       context.accumulate[norm.weight], *rope_, context.stream);
  }
  if (!head_norms_.empty() || !rope_) return;
  rope(dqkv, 0, heads_ + kv_heads_, *rope_, RopeDirection::backward, context.stream);
}

void AttentionHalf::forward(const ForwardContext& context, const Tensor& middle) const {
  Workspace workspace(context.workspace);
  const NormScratch s = forward_scratch(workspace, context.batch.shape, context.input.dtype());
  const Tensor& qkv = context.saved[kQkv];
  const Tensor& attended = context.saved[kAttended];
  qkv_.forward(context.parameters, context.input, s, by_token(qkv), context.stream);
  rotate(context);
  attention_forward(qkv, context.batch.mask, attended, context.saved[kLse], attention_spec(false),
                    context.stream);
  out_.forward(context, by_token(attended), context.input, middle);
}

void AttentionHalf::backward(const BackwardContext& context) const {
  Workspace workspace(context.workspace);
  const BackwardScratch s = backward_scratch(workspace, context.batch.shape, context.input.dtype());
  const Tensor& attended = context.saved[kAttended];
  const Tensor dy = out_.backward_dropout(context, context.input_gradient, s.masked);
  out_.backward_parameters(context, by_token(attended), dy);
  out_.backward_input(context, dy, by_token(s.dattended));
  attention_backward(s.dattended, context.saved[kQkv], context.batch.mask, attended,
                     context.saved[kLse], s.dqkv, attention_spec(context.repeatable),
                     context.stream);
  rotate_back(context, s.dqkv);
  qkv_.backward(context, context.input, s.norm, by_token(s.dqkv), context.input_gradient,
                context.input_gradient);
}

double AttentionHalf::flops(const BatchShape& shape) const {
  const std::int64_t rows = shape.tokens();
  return qkv_.flops(rows) + out_.flops(rows) + attention_flops(shape, heads_, head_dim_, causal_);
}

std::string AttentionHalf::chosen_kernels(const BatchShape& shape, bool padded,
                                          const Precision& precision, Stream& stream) const {
  const Shape qkv{shape.samples, shape.sequence, qkv_heads(), head_dim_};
  return "attention by " + attention_engine(qkv, precision.compute, padded,
                                            attention_spec(precision.repeatable), stream);
}

}  // namespace sherd
