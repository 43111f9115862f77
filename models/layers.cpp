#include "models/layers.h"

#include <algorithm>
#include <utility>

#include "kernels/dropout.h"
#include "kernels/norm.h"

namespace sherd {
namespace {

std::vector<ParameterPart> parts_with_suffix(const std::vector<ParameterPart>& parts,
                                             const std::string& suffix) {
  std::vector<ParameterPart> named = parts;
  for (ParameterPart& part : named) part.name += suffix;
  return named;
}

}  // namespace

Tensor as_rows(const Tensor& x) {
  const std::int64_t width = x.dim(-1);
  return x.view({x.numel() / width, width});
}

double attention_flops(const BatchShape& shape, std::int64_t heads, std::int64_t head_dim,
                       bool causal) {
  const auto T = static_cast<double>(shape.sequence);
  const double pairs = static_cast<double>(shape.samples) * T * (causal ? (T + 1.0) / 2.0 : T);
  constexpr double kFlopsPerPairAndChannel = 4.0;  // q·k and p·v
  return kFlopsPerPairAndChannel * pairs * static_cast<double>(heads * head_dim);
}

ParameterSpec matrix_parameter(const std::string& name, Shape shape, Init init) {
  ParameterSpec spec;
  spec.name = name;
  spec.shape = shape;
  spec.init = init;
  return spec;
}

ParameterSpec vector_parameter(const std::string& name, std::int64_t width, Init init) {
  ParameterSpec spec = matrix_parameter(name, {width}, init);
  spec.decay = false;
  return spec;
}

LinearSpec normal_linear(const std::string& name, std::int64_t in, std::int64_t out, bool bias,
                         float init_std, std::vector<ParameterPart> parts) {
  return {.name = name,
          .in = in,
          .out = out,
          .bias = bias,
          .weight_init = {.kind = Init::Kind::normal, .scale = init_std},
          .bias_init = {.kind = Init::Kind::zeros},
          .parts = std::move(parts)};
}

LinearLayer::LinearLayer(const LinearSpec& spec, std::vector<ParameterSpec>& parameters)
    : in_(spec.in),
      out_(spec.out),
      layout_(spec.layout),
      weight_(parameters.size()),
      has_bias_(spec.bias) {
  const bool out_in = layout_ == WeightLayout::out_in;
  parameters.push_back(matrix_parameter(
      spec.name + ".weight", out_in ? Shape{out_, in_} : Shape{in_, out_}, spec.weight_init));
  parameters.back().parts = parts_with_suffix(spec.parts, ".weight");
  if (!has_bias_) return;
  parameters.push_back(vector_parameter(spec.name + ".bias", out_, spec.bias_init));
  parameters.back().parts = parts_with_suffix(spec.parts, ".bias");
}

void LinearLayer::forward(std::span<const Tensor> parameters, const Tensor& x, const Tensor& y,
                          Stream& stream) const {
  linear_forward(as_rows(x), parameters[weight_], bias_of(parameters), as_rows(y), layout_, stream);
}

void LinearLayer::forward(std::span<const Tensor> parameters, const Tensor& x,
                          const Tensor& residual, const Tensor& y, Stream& stream) const {
  linear_forward(as_rows(x), parameters[weight_], bias_of(parameters), as_rows(residual),
                 as_rows(y), layout_, stream);
}

void LinearLayer::backward_parameters(const BackwardContext& context, const Tensor& x,
                                      const Tensor& dy) const {
  linear_backward_weight(as_rows(x), as_rows(dy), context.gradients[weight_], layout_,
                         context.accumulate[weight_], context.stream);
  if (!has_bias_) return;
  bias_backward(as_rows(dy), context.gradients[weight_ + 1], context.accumulate[weight_ + 1],
                context.stream);
}

void LinearLayer::backward_input(const BackwardContext& context, const Tensor& dy, const Tensor& dx,
                                 Accumulate accumulate) const {
  linear_backward_input(as_rows(dy), context.parameters[weight_], as_rows(dx), layout_, accumulate,
                        context.stream);
}

double LinearLayer::flops(std::int64_t rows) const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in_) * static_cast<double>(out_);
}

std::int64_t LinearLayer::scratch_bytes(std::int64_t rows) const {
  return std::max(linear_scratch_bytes(), has_bias_ ? bias_backward_scratch_bytes(rows, out_) : 0);
}

namespace {

/// Number of the first element of x [B, ...] in the step's batch.
std::uint64_t first_element(const BatchView& batch, const Tensor& x) {
  const std::int64_t samples = batch.shape.samples;
  const std::int64_t each = samples == 0 ? 0 : x.numel() / samples;
  return static_cast<std::uint64_t>(batch.first_sample * each);
}

}  // namespace

void DropoutLayer::apply(const BatchView& batch, const DropoutKey& rng, const Tensor& x,
                         const Tensor& y, Stream& stream) const {
  dropout(x, y, probability_, dropout_site(rng, site_), first_element(batch, x), stream);
}

void DropoutLayer::apply(const BatchView& batch, const DropoutKey& rng, const Tensor& x,
                         const Tensor& residual, const Tensor& y, Stream& stream) const {
  dropout(x, residual, y, probability_, dropout_site(rng, site_), first_element(batch, x), stream);
}

void ResidualLayer::forward(const ForwardContext& context, const Tensor& x, const Tensor& residual,
                            const Tensor& y) const {
  if (!context.training || !drops()) {
    return LinearLayer::forward(context.parameters, x, residual, y, context.stream);
  }
  LinearLayer::forward(context.parameters, x, y, context.stream);
  dropout_.apply(context.batch, context.rng, y, residual, y, context.stream);
}

Tensor ResidualLayer::backward_dropout(const BackwardContext& context, const Tensor& dy,
                                       const Tensor& masked) const {
  if (!drops()) return dy;
  dropout_.apply(context.batch, context.rng, dy, masked, context.stream);
  return masked;
}

NormLayer::NormLayer(NormKind kind, const std::string& name, std::int64_t width, float epsilon,
                     std::vector<ParameterSpec>& parameters)
    : kind_(kind), width_(width), epsilon_(epsilon), weight_(parameters.size()) {
  parameters.push_back(vector_parameter(name + ".weight", width, {.kind = Init::Kind::ones}));
  if (kind_ == NormKind::rms) return;
  parameters.push_back(vector_parameter(name + ".bias", width, {.kind = Init::Kind::zeros}));
}

NormStatistics NormLayer::statistics(Workspace& workspace, std::int64_t rows) const {
  NormStatistics statistics;
  if (kind_ == NormKind::layer) statistics.mean = workspace.take(DType::f32, {rows});
  statistics.rstd = workspace.take(DType::f32, {rows});
  return statistics;
}

NormScratch NormLayer::scratch(Workspace& workspace, std::int64_t rows, DType compute) const {
  return {workspace.take(compute, {rows, width_}), statistics(workspace, rows)};
}

std::int64_t NormLayer::scratch_bytes(std::int64_t rows) const {
  return kind_ == NormKind::rms ? rms_norm_backward_scratch_bytes(rows, width_)
                                : layer_norm_backward_scratch_bytes(rows, width_);
}

void NormLayer::forward(std::span<const Tensor> parameters, const Tensor& x, const Tensor& y,
                        const NormStatistics& statistics, Stream& stream) const {
  if (kind_ == NormKind::rms) {
    rms_norm_forward(as_rows(x), parameters[weight_], as_rows(y), statistics.rstd, epsilon_,
                     stream);
  } else {
    layer_norm_forward(as_rows(x), parameters[weight_], parameters[weight_ + 1], as_rows(y),
                       statistics.mean, statistics.rstd, epsilon_, stream);
  }
}

void NormLayer::backward(const BackwardContext& context, const Tensor& dy, const Tensor& x,
                         const NormStatistics& statistics, const Tensor& residual,
                         const Tensor& dx) const {
  const Tensor around = residual.defined() ? as_rows(residual) : Tensor{};
  if (kind_ == NormKind::rms) {
    rms_norm_backward(as_rows(dy), as_rows(x), context.parameters[weight_], statistics.rstd, around,
                      as_rows(dx), context.gradients[weight_], context.accumulate[weight_],
                      context.stream);
  } else {
    layer_norm_backward(as_rows(dy), as_rows(x), context.parameters[weight_], statistics.mean,
                        statistics.rstd, around, as_rows(dx), context.gradients[weight_],
                        context.gradients[weight_ + 1], context.accumulate[weight_],
                        context.stream);
  }
}

NormedLinear::NormedLinear(NormKind kind, const std::string& norm_name, float epsilon,
                           const LinearSpec& spec, std::vector<ParameterSpec>& parameters)
    : norm_(norm_name.empty() ? std::nullopt
                              : std::optional<NormLayer>(std::in_place, kind, norm_name, spec.in,
                                                         epsilon, parameters)),
      linear_(spec, parameters) {}

NormScratch NormedLinear::scratch(Workspace& workspace, std::int64_t rows, DType compute) const {
  return norm_ ? norm_->scratch(workspace, rows, compute) : NormScratch{};
}

std::int64_t NormedLinear::scratch_bytes(std::int64_t rows) const {
  return std::max(linear_.scratch_bytes(rows), norm_ ? norm_->scratch_bytes(rows) : 0);
}

Tensor NormedLinear::normed(std::span<const Tensor> parameters, const Tensor& x,
                            const NormScratch& scratch, Stream& stream) const {
  if (!norm_) return x;
  norm_->forward(parameters, x, scratch.normed, scratch.statistics, stream);
  return scratch.normed;
}

void NormedLinear::forward(std::span<const Tensor> parameters, const Tensor& x,
                           const NormScratch& scratch, const Tensor& y, Stream& stream) const {
  linear_.forward(parameters, normed(parameters, x, scratch, stream), y, stream);
}

void NormedLinear::backward(const BackwardContext& context, const Tensor& x,
                            const NormScratch& scratch, const Tensor& dy, const Tensor& around,
                            const Tensor& dx) const {
  linear_.backward_parameters(context, normed(context.parameters, x, scratch, context.stream), dy);
  if (!norm_) return linear_.backward_input(context, dy, dx, Accumulate::yes);
  linear_.backward_input(context, dy, scratch.normed);
  norm_->backward(context, scratch.normed, x, scratch.statistics, around, dx);
}

}  // namespace sherd
