#include "runtime/config/model_json.h"

#include <algorithm>

#include "core/error.h"

namespace sherd {
namespace {

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::f32:
      return "float32";
    default:
      throw ArgumentError(fmt::format("weights are f32, bf16 or f16; got {}", name_of(dtype)));
  }
}

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu_tanh:
      return "gelu_new";
    case Activation::gelu_erf:
      return "gelu";
    case Activation::silu:
      return "silu";
    case Activation::tanh:
      return "tanh";
  }
  return "?";
}

const char* architecture(const std::string& model_type) {
  if (model_type == "gpt2") return "GPT2LMHeadModel";
  if (model_type == "bert") return "BertForSequenceClassification";
  if (model_type == "qwen2") return "Qwen2ForCausalLM";
  return model_type == "qwen3" ? "Qwen3ForCausalLM" : "LlamaForCausalLM";
}

JsonValue rope_scaling(const RopeSpec& rope) {
  if (rope.scaling == RopeSpec::Scaling::none) return {};
  JsonValue json = json_object();
  const bool linear = rope.scaling == RopeSpec::Scaling::linear;
  set_member(json, "rope_type", json_of(linear ? "linear" : "llama3"));
  set_member(json, "factor", json_of(rope.factor));
  if (linear) return json;
  set_member(json, "low_freq_factor", json_of(rope.low_frequency_factor));
  set_member(json, "high_freq_factor", json_of(rope.high_frequency_factor));
  set_member(json, "original_max_position_embeddings",
             json_of(static_cast<std::int64_t>(rope.original_max_positions)));
  return json;
}

void add_gpt2(JsonValue& json, const ModelConfig& model) {
  set_member(json, "n_embd", json_of(model.hidden_size));
  set_member(json, "n_layer", json_of(model.num_hidden_layers));
  set_member(json, "n_head", json_of(model.num_attention_heads));
  set_member(json, "n_inner", json_of(model.intermediate_size));
  set_member(json, "n_positions", json_of(model.max_position_embeddings));
  set_member(json, "activation_function", json_of(activation_name(model.activation)));
  set_member(json, "layer_norm_epsilon", json_of(model.norm_epsilon));
  set_member(json, "embd_pdrop", json_of(model.embedding_dropout));
  set_member(json, "resid_pdrop", json_of(model.residual_dropout));
  set_member(json, "attn_pdrop", json_of(model.attention_dropout));
}

void add_widths(JsonValue& json, const ModelConfig& model) {
  set_member(json, "hidden_size", json_of(model.hidden_size));
  set_member(json, "intermediate_size", json_of(model.intermediate_size));
  set_member(json, "num_hidden_layers", json_of(model.num_hidden_layers));
  set_member(json, "num_attention_heads", json_of(model.num_attention_heads));
}

void add_rotary(JsonValue& json, const ModelConfig& model) {
  add_widths(json, model);
  set_member(json, "num_key_value_heads", json_of(model.num_key_value_heads));
  set_member(json, "head_dim", json_of(model.head_dim));
  set_member(json, "max_position_embeddings", json_of(model.max_position_embeddings));
  set_member(json, "hidden_act", json_of(activation_name(model.activation)));
  set_member(json, "rms_norm_eps", json_of(model.norm_epsilon));
  set_member(json, "rope_theta", json_of(model.rope.theta));
  set_member(json, "rope_scaling", rope_scaling(model.rope));
  set_member(json, "attention_dropout", json_of(model.attention_dropout));
  if (model.model_type != "qwen2") set_member(json, "attention_bias", json_of(false));
  if (model.model_type != "llama") set_member(json, "use_sliding_window", json_of(false));
}

JsonValue label2id_json(const std::vector<std::string>& labels) {
  JsonValue ids = json_object();
  for (std::size_t id = 0; id < labels.size(); ++id) {
    add_member(ids, labels[id], json_of(static_cast<std::int64_t>(id)));
  }
  return ids;
}

void add_bert(JsonValue& json, const ModelConfig& model) {
  add_widths(json, model);
  set_member(json, "max_position_embeddings", json_of(model.max_position_embeddings));
  set_member(json, "type_vocab_size", json_of(model.type_vocab_size));
  set_member(json, "hidden_act", json_of(activation_name(model.activation)));
  set_member(json, "layer_norm_eps", json_of(model.norm_epsilon));
  set_member(json, "hidden_dropout_prob", json_of(model.residual_dropout));
  set_member(json, "attention_probs_dropout_prob", json_of(model.attention_dropout));
  set_member(json, "classifier_dropout", json_of(model.classifier_dropout));
  set_member(json, "pad_token_id", json_of(model.pad_token_id));
  set_member(json, "id2label", id2label_json(model.labels));
  set_member(json, "label2id", label2id_json(model.labels));
}

void add_sizes(JsonValue& json, const ModelConfig& model) {
  if (model.model_type == "gpt2") return add_gpt2(json, model);
  model.model_type == "bert" ? add_bert(json, model) : add_rotary(json, model);
}

void add_carried(JsonValue& json, const ModelConfig& model) {
  for (const auto& [key, text] : model.carried) {
    if (json.find(key) == nullptr) set_member(json, key, parse_json(text, key));
  }
}

}  // namespace

std::string model_config_json(const ModelConfig& model, DType weights) {
  JsonValue json = json_object();
  if (model.model_type == "mlp") {
    set_member(json, "model_type", json_of("mlp"));
    set_member(json, "layers", json_of(model.layers));
    return write_json(json, 2) + "\n";
  }
  JsonValue names;
  names.kind = JsonValue::Kind::array;
  names.items.push_back(json_of(architecture(model.model_type)));
  set_member(json, "architectures", names);
  set_member(json, "model_type", json_of(std::string_view(model.model_type)));
  set_member(json, "vocab_size", json_of(model.vocab_size));
  add_sizes(json, model);
  set_member(json, "initializer_range", json_of(model.initializer_range));
  if (model.model_type != "bert") {
    set_member(json, "tie_word_embeddings", json_of(model.tie_word_embeddings));
  }
  set_member(json, "torch_dtype", json_of(torch_name(weights)));
  add_carried(json, model);
  return write_json(json, 2) + "\n";
}

JsonValue id2label_json(const std::vector<std::string>& labels) {
  JsonValue names = json_object();
  for (std::size_t id = 0; id < labels.size(); ++id) {
    add_member(names, std::to_string(id), json_of(std::string_view(labels[id])));
  }
  return names;
}

}  // namespace sherd
