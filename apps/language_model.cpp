#include "apps/language_model.h"

#include <algorithm>
#include <map>

#include "apps/pretrained_weights.h"
#include "core/error.h"
#include "core/label.h"
#include "models/build.h"
#include "runtime/config/load.h"

namespace sherd {
namespace {

std::int64_t saved_bytes(const Footprint& footprint) {
  std::int64_t bytes = 0;
  for (const TensorSpec& spec : footprint.saved) bytes += aligned(spec.size_bytes());
  return bytes;
}

std::int64_t weight_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters()) {
      if (spec.tied_to.empty()) bytes += aligned(spec.shape.numel() * size_of(DType::f32));
    }
  }
  return bytes;
}

Model checked_model(const ModelConfig& config, const std::string& folder) {
  Model model = build_model(config);
  require(model.sample.label_per_token,
          "{}: {} makes no text; generate takes a gpt2, llama, qwen2 or qwen3", folder,
          config.model_type);
  return model;
}

}  // namespace

LanguageModel::LanguageModel(const std::string& folder, std::int64_t longest, int threads)
    : config_(load_model_config(folder, ModelUse::inference)),
      model_(checked_model(config_, folder)),
      window_(std::min(config_.max_position_embeddings, longest)),
      weights_(memory_, weight_bytes(model_)),
      stream_("generate", threads) {
  load_weights(folder);
  reserve_activations();
}

void LanguageModel::load_weights(const std::string& folder) {
  const PretrainedWeights stored(folder, model_.units);
  std::map<std::string, Tensor> by_name;
  std::int64_t offset = 0;
  for (const auto& unit : model_.units) {
    parameters_.emplace_back();
    for (const ParameterSpec& spec : unit->parameters()) {
      if (spec.tied_to.empty()) {
        const Tensor values = weights_.tensor(DType::f32, spec.shape, offset);
        offset += aligned(values.size_bytes());
        stored.read(spec, {0, values.numel()},
                    {values.as<float>(), static_cast<std::size_t>(values.numel())});
        by_name[spec.name] = values;
      }
      parameters_.back().push_back(by_name.at(spec.tied_to.empty() ? spec.name : spec.tied_to));
    }
  }
}

void LanguageModel::reserve_activations() {
  std::int64_t output = 0;
  std::int64_t saved = 0;
  std::int64_t workspace = 0;
  for (const auto& unit : model_.units) {
    const Footprint footprint = unit->footprint({1, window_}, {});
    output = std::max(output, footprint.output.size_bytes());
    saved = std::max(saved, saved_bytes(footprint));
    workspace = std::max(workspace, footprint.forward_workspace_bytes);
  }
  tokens_ = Buffer(memory_, window_ * size_of(DType::i32));
  for (Buffer& buffer : outputs_) buffer = Buffer(memory_, output);
  saved_ = Buffer(memory_, saved);
  workspace_ = Buffer(memory_, workspace);
  losses_ = Buffer(memory_, size_of(DType::f32));
  logits_ = Buffer(memory_, vocabulary() * size_of(DType::f32));
}

std::vector<Tensor> LanguageModel::saved_views(const Footprint& footprint) const {
  std::vector<Tensor> views;
  std::int64_t offset = 0;
  for (const TensorSpec& spec : footprint.saved) {
    views.push_back(saved_.tensor(spec.dtype, spec.shape, offset));
    offset += aligned(spec.size_bytes());
  }
  return views;
}

Tensor LanguageModel::forward_unit(std::size_t unit, const BatchView& batch, const Tensor& input) {
  const bool last = unit + 1 == model_.units.size();
  const Footprint footprint = model_.units[unit]->footprint(batch.shape, {});
  const std::vector<Tensor> saved = saved_views(footprint);
  const Tensor none;
  const Tensor output =
      last ? none : outputs_[unit % 2].tensor(footprint.output.dtype, footprint.output.shape);
  model_.units[unit]->forward(
      {.batch = batch,
       .training = false,
       .input = input,
       .output = output,
       .parameters = parameters_[unit],
       .saved = saved,
       .workspace = workspace_.tensor(DType::u8, {footprint.forward_workspace_bytes}),
       .losses = last ? losses_.tensor(DType::f32, {1}) : none,
       .logits = last ? logits_.tensor(DType::f32, {1, vocabulary()}) : none,
       .rng = {},
       .stream = stream_});
  return output;
}

std::span<const float> LanguageModel::next_logits(std::span<const std::int32_t> tokens) {
  const auto count = std::min(static_cast<std::int64_t>(tokens.size()), window_);
  BatchView batch;
  batch.shape = {1, count};
  batch.inputs = tokens_.tensor(DType::i32, {1, count});
  std::copy(tokens.end() - count, tokens.end(), batch.inputs.as<std::int32_t>());
  Tensor x;
  for (std::size_t unit = 0; unit + 1 < model_.units.size(); ++unit) {
    x = forward_unit(unit, batch, x);
  }
  // The head works row by row, so it is shown the last row alone.
  const std::int64_t width = x.dim(-1);
  std::int32_t no_label = kIgnoredLabel;
  BatchView end;
  end.shape = {1, 1};
  end.inputs = batch.inputs.view({count}).rows(count - 1, 1).view({1, 1});
  end.labels = Tensor(&no_label, DType::i32, {1, 1});
  forward_unit(model_.units.size() - 1, end,
               x.view({count, width}).rows(count - 1, 1).view({1, 1, width}));
  stream_.synchronize();
  return {logits_.tensor(DType::f32, {vocabulary()}).as<float>(),
          static_cast<std::size_t>(vocabulary())};
}

}  // namespace sherd
