#include "models/build.h"

#include <string>
#include <utility>

#include "core/counted.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mlp.h"

namespace sherd {
namespace {

void require_positive(std::int64_t value, const char* key) {
  require(value > 0, "{} must be at least 1, got {}", key, value);
}

void check_layers(const ModelConfig& config) {
  require(
      config.layers.size() >= 2,
      "layers must name at least the features and the classes, such as [4, 16, 3]; got {} entries",
      config.layers.size());
  for (const std::int64_t width : config.layers) require_positive(width, "every entry of layers");
}

void check_transformer(const ModelConfig& config) {
  require_positive(config.vocab_size, "vocab_size");
  require_positive(config.hidden_size, "hidden_size");
  require_positive(config.intermediate_size, "intermediate_size");
  require_positive(config.num_hidden_layers, "num_hidden_layers");
  require_positive(config.num_attention_heads, "num_attention_heads");
  require(config.attention_dropout == 0.0f,
          "attention dropout (attention_dropout, attn_pdrop, attention_probs_dropout_prob) is not "
          "supported, because attention never holds its probabilities; expected 0, got {}",
          config.attention_dropout);
  for (const float p :
       {config.embedding_dropout, config.residual_dropout, config.classifier_dropout}) {
    require(p >= 0.0f && p < 1.0f, "a dropout probability must be in [0, 1), got {}", p);
  }
}

void check_heads(const ModelConfig& config, const char* width_key, const char* heads_key) {
  const std::int64_t heads = config.num_attention_heads;
  const std::int64_t below = config.hidden_size / heads * heads;
  require(below == config.hidden_size,
          "{} must be a multiple of {}: {} is not one of {}; the next is {}", width_key, heads_key,
          config.hidden_size, heads, below + heads);
}

void check_gpt2(const ModelConfig& config) {
  check_transformer(config);
  require_positive(config.max_position_embeddings, "n_positions");
  check_heads(config, "n_embd", "n_head");
}

void check_bert(const ModelConfig& config) {
  check_transformer(config);
  require_positive(config.max_position_embeddings, "max_position_embeddings");
  require_positive(config.type_vocab_size, "type_vocab_size");
  check_heads(config, "hidden_size", "num_attention_heads");
  require(config.labels.size() >= 2, "a classifier needs at least two labels (id2label), got {}",
          config.labels.size());
}

void check_llama(const ModelConfig& config) {
  check_transformer(config);
  require_positive(config.num_key_value_heads, "num_key_value_heads");
  require(config.num_attention_heads % config.num_key_value_heads == 0,
          "num_attention_heads must be a multiple of num_key_value_heads, got {} and {}",
          config.num_attention_heads, config.num_key_value_heads);
  require(config.head_dim > 0 && config.head_dim % 2 == 0,
          "head_dim must be even, because rotary embedding turns pairs; got {}", config.head_dim);
  require(config.attention_bias == (config.model_type == "qwen2"),
          "biases of q, k and v are what makes a qwen2; got model_type {} with attention_bias {}",
          config.model_type, config.attention_bias);
  require(config.qk_norm == (config.model_type == "qwen3"),
          "norms of the q and k heads are what makes a qwen3; got model_type {} with qk_norm {}",
          config.model_type, config.qk_norm);
  require(config.activation == Activation::silu,
          "hidden_act of a {} must be \"silu\" (its MLP is SwiGLU)", config.model_type);
  require(config.embedding_dropout == 0.0f && config.residual_dropout == 0.0f,
          "a {} has no dropout on embeddings and residuals; got embd_pdrop {}, resid_pdrop {}",
          config.model_type, config.embedding_dropout, config.residual_dropout);
}

SampleSpec token_samples(const ModelConfig& config) {
  return {.inputs = SampleSpec::Inputs::tokens,
          .label_per_token = true,
          .input_range = config.vocab_size,
          .label_range = config.vocab_size};
}

Model build_mlp(const ModelConfig& config) {
  check_layers(config);
  Model model;
  model.sample = {.inputs = SampleSpec::Inputs::features,
                  .features = config.layers.front(),
                  .label_per_token = false,
                  .label_range = config.layers.back()};
  model.max_sequence = 1;
  model.units = make_mlp_units(config);
  return model;
}

Model build_gpt2(const ModelConfig& config) {
  check_gpt2(config);
  Model model;
  model.sample = token_samples(config);
  model.max_sequence = config.max_position_embeddings;
  model.units = make_gpt2_units(config);
  return model;
}

Model build_bert(const ModelConfig& config) {
  check_bert(config);
  Model model;
  model.sample = {.inputs = SampleSpec::Inputs::tokens,
                  .label_per_token = false,
                  .input_range = config.vocab_size,
                  .label_range = static_cast<std::int64_t>(config.labels.size()),
                  .token_types = config.type_vocab_size};
  model.max_sequence = config.max_position_embeddings;
  model.units = make_bert_units(config);
  return model;
}

Model build_llama(const ModelConfig& config) {
  check_llama(config);
  Model model;
  model.sample = token_samples(config);
  model.units = make_llama_units(config);
  return model;
}

Model build_units(const ModelConfig& config) {
  const std::string& type = config.model_type;
  if (type == "mlp") return build_mlp(config);
  if (type == "gpt2") return build_gpt2(config);
  if (type == "llama" || type == "qwen2" || type == "qwen3") return build_llama(config);
  if (type == "bert") return build_bert(config);
  throw ArgumentError(fmt::format(
      "model_type must be one of mlp, gpt2, llama, qwen2, qwen3 and bert, got \"{}\"", type));
}

/// Parameters stored, each tied weight once.
std::int64_t count_parameters(const Model& model) {
  std::int64_t count = 0;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& parameter : unit->parameters()) {
      if (parameter.tied_to.empty()) count += parameter.shape.numel();
    }
  }
  return count;
}

std::string for_people(std::int64_t count) {
  constexpr std::pair<double, const char*> kScales[] = {{1e9, " B"}, {1e6, " M"}, {1e3, " k"}};
  const auto value = static_cast<double>(count);
  for (const auto& [scale, suffix] : kScales) {
    if (value >= scale) return fmt::format("{:.1f}{}", value / scale, suffix);
  }
  return std::to_string(count);
}

std::string describe(const ModelConfig& config, const Model& model) {
  const std::size_t layers = config.model_type == "mlp"
                                 ? model.units.size()
                                 : static_cast<std::size_t>(config.num_hidden_layers);
  return fmt::format("{}, {}, {} parameters", config.model_type,
                     counted(static_cast<std::int64_t>(layers), "layer"),
                     for_people(count_parameters(model)));
}

}  // namespace

Model build_model(const ModelConfig& config) {
  Model model = build_units(config);
  model.description = describe(config, model);
  return model;
}

}  // namespace sherd
