#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "runtime/config/fates.h"
#include "runtime/config/model_path.h"
#include "runtime/config/resolve.h"
#include "runtime/config/resolve_model_parts.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

/// Divisors of `n` next to `near`, as "4 or 5".
std::string nearest_divisors(std::int64_t n, std::int64_t near) {
  std::int64_t below = near, above = near;
  while (below > 1 && n % below != 0) --below;
  while (above < n && n % above != 0) ++above;
  return fmt::format("{} or {}", below, above);
}

}  // namespace

std::int64_t needed(Settings& settings, std::string_view path, std::string_view type) {
  if (settings.find(path) == nullptr)
    settings.fail(path, fmt::format("is missing; {} needs it", type));
  return settings.integer(path);
}

Activation activation_named(std::string_view name) {
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  return Activation::silu;
}

void check_heads(Settings& settings, const ModelConfig& model) {
  if (model.hidden_size % model.num_attention_heads == 0) return;
  settings.fail("model.num_attention_heads",
                fmt::format("{} heads don't divide hidden_size {}; the nearest that do are {}",
                            model.num_attention_heads, model.hidden_size,
                            nearest_divisors(model.hidden_size, model.num_attention_heads)));
}

namespace {

int small(std::int64_t value) { return static_cast<int>(value); }

/// GPT-2 has its own names; Hugging Face takes both, and so does Sherd.
std::int64_t needed(Settings& settings, std::string_view path, std::string_view own_path,
                    const std::string& type) {
  if (type != "gpt2" || settings.find(own_path) == nullptr) return needed(settings, path, type);
  const std::int64_t value = settings.integer(own_path);
  if (settings.integer_or(path, value, std::string(own_path)) != value) {
    settings.fail(path, fmt::format("is not {}, which is {}; give one of them", own_path, value));
  }
  return value;
}

void resolve_sizes(Settings& settings, ModelConfig& model) {
  const std::string& type = model.model_type;
  model.vocab_size = needed(settings, "model.vocab_size", type);
  model.hidden_size = needed(settings, "model.hidden_size", "model.n_embd", type);
  model.num_hidden_layers =
      small(needed(settings, "model.num_hidden_layers", "model.n_layer", type));
  model.num_attention_heads =
      small(needed(settings, "model.num_attention_heads", "model.n_head", type));
  if (type == "gpt2" && settings.find("model.n_positions") != nullptr) {
    needed(settings, "model.max_position_embeddings", "model.n_positions", type);
  }
  model.max_position_embeddings = settings.integer_or(
      "model.max_position_embeddings", resolve_sequence_length(settings), "data.sequence_length");
  model.initializer_range = static_cast<float>(settings.number("model.initializer_range"));
  if (type == "bert") return;
  model.tie_word_embeddings =
      settings.boolean_or("model.tie_word_embeddings", type == "gpt2", "model_type " + type);
}

void resolve_gpt2(Settings& settings, ModelConfig& model) {
  check_heads(settings, model);
  model.num_key_value_heads = model.num_attention_heads;
  model.head_dim = small(model.hidden_size / model.num_attention_heads);
  model.intermediate_size =
      settings.integer_or("model.n_inner", 4 * model.hidden_size, "4 × n_embd");
  model.attention_bias = true;
  model.norm_epsilon = static_cast<float>(settings.number("model.layer_norm_epsilon"));
  model.activation = activation_named(settings.text("model.activation_function"));
  model.embedding_dropout = static_cast<float>(settings.number("model.embd_pdrop"));
  model.residual_dropout = static_cast<float>(settings.number("model.resid_pdrop"));
}

/// The section that scales the frequencies: version 5 of transformers calls it rope_parameters.
std::string rope_section(Settings& settings) {
  const bool old = settings.any_given("model.rope_scaling");
  const bool current = settings.any_given("model.rope_parameters");
  const bool type_given = settings.given("model.rope_parameters.rope_type") ||
                          settings.given("model.rope_parameters.type");
  if (old && current && type_given) {
    settings.fail("model.rope_scaling.rope_type",
                  "rope_scaling and rope_parameters both scale the frequencies; keep one");
  }
  return old ? "model.rope_scaling" : "model.rope_parameters";
}

std::string rope_type_in(Settings& settings, const std::string& section) {
  const std::string path = section + ".rope_type", old_path = section + ".type";
  const bool both = settings.given(path) && settings.given(old_path);
  if (both && settings.text(path) != settings.text(old_path)) {
    settings.fail(old_path, fmt::format("is not {}, which is \"{}\"; give one of them", path,
                                        settings.text(path)));
  }
  if (settings.given(old_path)) return settings.text(old_path);
  return settings.given(path) ? settings.text(path) : "default";
}

double rope_theta(Settings& settings) {
  const std::string_view path = "model.rope_theta", current = "model.rope_parameters.rope_theta";
  if (settings.given(current)) {
    const double theta = settings.number(current);
    if (settings.number_or(path, theta, std::string(current)) != theta) {
      settings.fail(path, fmt::format("is not {}, which is {}; give one of them", current, theta));
    }
  }
  return settings.number_or(path, 10000.0, "");
}

RopeSpec resolve_rope(Settings& settings) {
  RopeSpec rope;
  rope.theta = rope_theta(settings);
  if (rope.theta <= 0.0) settings.fail("model.rope_theta", "must be above 0");
  const std::string section = rope_section(settings);
  const std::string type = rope_type_in(settings, section);
  if (type == "default") return rope;
  const auto scaled = [&](std::string_view name) {
    const std::string path = section + "." + std::string(name);
    if (!settings.given(path)) settings.fail(path, fmt::format("is missing; {} needs it", type));
    const double value = settings.number(path);
    if (value <= 0.0) settings.fail(path, "must be above 0");
    return value;
  };
  rope.factor = scaled("factor");
  if (rope.factor < 1.0) settings.fail(section + ".factor", "must be at least 1");
  rope.scaling = type == "linear" ? RopeSpec::Scaling::linear : RopeSpec::Scaling::llama3;
  if (rope.scaling == RopeSpec::Scaling::linear) return rope;
  rope.low_frequency_factor = scaled("low_freq_factor");
  rope.high_frequency_factor = scaled("high_freq_factor");
  rope.original_max_positions = scaled("original_max_position_embeddings");
  if (rope.high_frequency_factor <= rope.low_frequency_factor) {
    settings.fail(section + ".high_freq_factor",
                  fmt::format("must be above low_freq_factor {}", rope.low_frequency_factor));
  }
  return rope;
}

void resolve_attention(Settings& settings, ModelConfig& model) {
  if (settings.find("model.head_dim") == nullptr) check_heads(settings, model);
  model.head_dim =
      small(settings.integer_or("model.head_dim", model.hidden_size / model.num_attention_heads,
                                "hidden_size / num_attention_heads"));
  if (model.head_dim % 2 != 0) {
    settings.fail("model.head_dim",
                  fmt::format("{} is odd, but rotary embeddings turn pairs", model.head_dim));
  }
  model.num_key_value_heads = small(settings.integer_or(
      "model.num_key_value_heads", model.num_attention_heads, "num_attention_heads"));
  if (model.num_attention_heads % model.num_key_value_heads != 0) {
    settings.fail(
        "model.num_key_value_heads",
        fmt::format("{} don't divide num_attention_heads {}; the nearest that do are {}",
                    model.num_key_value_heads, model.num_attention_heads,
                    nearest_divisors(model.num_attention_heads, model.num_key_value_heads)));
  }
}

void check_layer_types(Settings& settings) {
  const Setting* types = settings.find("model.layer_types");
  if (types == nullptr) return;
  for (const JsonValue& type : types->value.items) {
    if (type.text == "full_attention") continue;
    settings.fail("model.layer_types",
                  fmt::format("\"{}\" is not supported, only full_attention", type.text));
  }
}

/// Blocks have the activation of their type; another one is not built.
Activation resolve_hidden_act(Settings& settings, const std::string& type, const char* built) {
  const std::string name = settings.text_or("model.hidden_act", built, "model_type " + type);
  const Activation activation = activation_named(name);
  if (activation != activation_named(built)) {
    settings.fail("model.hidden_act", fmt::format("\"{}\" is not supported for {}; expected \"{}\"",
                                                  name, type, built));
  }
  return activation;
}

void resolve_rotary(Settings& settings, ModelConfig& model) {
  model.intermediate_size = needed(settings, "model.intermediate_size", model.model_type);
  resolve_attention(settings, model);
  model.attention_bias = model.model_type == "qwen2";
  model.qk_norm = model.model_type == "qwen3";
  model.norm_epsilon = static_cast<float>(settings.number("model.rms_norm_eps"));
  model.rope = resolve_rope(settings);
  model.activation = resolve_hidden_act(settings, model.model_type, "silu");
  check_layer_types(settings);
}

void resolve_mlp(Settings& settings, ModelConfig& model) {
  if (settings.find("model.layers") == nullptr) {
    settings.fail("model.layers", "is missing; mlp needs it: [features, hidden …, classes]");
  }
  model.layers = settings.integers("model.layers");
  if (model.layers.size() < 2) {
    settings.fail("model.layers", "needs at least two sizes: features and classes");
  }
  model.activation = resolve_hidden_act(settings, "mlp", "relu");
}

void resolve_type(Settings& settings, ModelConfig& model) {
  const std::string& type = model.model_type;
  if (type == "mlp") return resolve_mlp(settings, model);
  resolve_sizes(settings, model);
  if (type == "gpt2") return resolve_gpt2(settings, model);
  type == "bert" ? resolve_bert(settings, model) : resolve_rotary(settings, model);
}

std::string config_file(const std::string& folder) {
  return (std::filesystem::path(folder) / "config.json").string();
}

void read_folder(Settings& settings, ModelConfig& model) {
  if (settings.find("model.path") == nullptr) return;
  model.path = settings.text("model.path");
  const std::string why_not = why_no_model_folder(model.path);
  if (!why_not.empty()) settings.fail("model.path", why_not);
  settings.add(read_json_file(config_file(model.path)), Settings::Source::folder);
}

/// What is written back with the trained model as it came.
void keep_carried(Settings& settings, ModelConfig& model) {
  for (const std::string_view path : carried_model_keys()) {
    const Setting* setting = settings.find(path);
    if (setting == nullptr) continue;
    model.carried.emplace_back(last_name(path), write_json(setting->value));
  }
  for (const JsonMember& member : settings.carried()) {
    model.carried.emplace_back(member.key, write_json(member.value));
  }
}

void check_dropout(Settings& settings, ModelUse use) {
  if (use == ModelUse::training) return;
  for (const std::string_view path :
       {"model.attn_pdrop", "model.attention_dropout", "model.attention_probs_dropout_prob"}) {
    if (settings.given(path)) settings.derive(path, json_of(0.0), "inference drops nothing");
  }
}

}  // namespace

ModelConfig resolve_model(Settings& settings, ModelUse use) {
  ModelConfig model;
  read_folder(settings, model);
  if (settings.find("model.model_type") == nullptr) {
    const std::string choices(settings.schema().find("model.model_type")->choices);
    const std::string too =
        model.path.empty() ? "" : fmt::format(", in \"{}\" too", config_file(model.path));
    settings.fail("model.model_type", fmt::format("is missing{}; expected one of {}", too,
                                                  joined(split_choices(choices))));
  }
  model.model_type = settings.text("model.model_type");
  settings.check_applies("model", model.model_type);
  check_dropout(settings, use);
  refuse_unsupported(settings);
  resolve_type(settings, model);
  keep_carried(settings, model);
  return model;
}

}  // namespace sherd
