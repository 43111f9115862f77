#include <fmt/format.h>

#include "runtime/config/resolve_model_parts.h"
#include "runtime/data/byte_tokens.h"

namespace sherd {
namespace {

/// Keys that other models keep whatever they say, and that would make this one another.
void refuse_other_uses(Settings& settings) {
  const Setting* decoder = settings.find("model.is_decoder");
  if (decoder != nullptr && decoder->value.boolean) {
    settings.fail("model.is_decoder", "true is not supported: tokens of a bert see each other");
  }
  const Setting* problem = settings.find("model.problem_type");
  if (problem == nullptr || problem->value.text == "single_label_classification") return;
  settings.fail("model.problem_type",
                fmt::format("{} is not supported, only single_label_classification",
                            write_json(problem->value)));
}

std::int64_t resolve_padding(Settings& settings, const ModelConfig& model) {
  const std::string_view path = "model.pad_token_id";
  const Setting* given = settings.find(path);
  if (given == nullptr) {
    return settings.integer_or(path, kPadding, "padding of texts that are bytes");
  }
  const std::int64_t id = given->value.integer.value_or(-1);
  if (id < 0 || id >= model.vocab_size) {
    settings.fail(path, fmt::format("{} is no token of a vocabulary of {}",
                                    write_json(given->value), model.vocab_size));
  }
  return id;
}

}  // namespace

void resolve_bert(Settings& settings, ModelConfig& model) {
  refuse_other_uses(settings);
  check_heads(settings, model);
  model.num_key_value_heads = model.num_attention_heads;
  model.head_dim = static_cast<int>(model.hidden_size / model.num_attention_heads);
  model.intermediate_size = needed(settings, "model.intermediate_size", model.model_type);
  model.attention_bias = true;
  model.norm_epsilon = static_cast<float>(settings.number("model.layer_norm_eps"));
  model.activation =
      activation_named(settings.text_or("model.hidden_act", "gelu", "model_type bert"));
  model.type_vocab_size = settings.integer("model.type_vocab_size");
  const double dropout = settings.number("model.hidden_dropout_prob");
  model.embedding_dropout = model.residual_dropout = static_cast<float>(dropout);
  model.classifier_dropout = static_cast<float>(
      settings.number_or("model.classifier_dropout", dropout, "hidden_dropout_prob"));
  model.pad_token_id = resolve_padding(settings, model);
  model.labels = resolve_labels(settings);
}

}  // namespace sherd
