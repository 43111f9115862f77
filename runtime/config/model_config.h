#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/activation.h"
#include "kernels/rope.h"

namespace sherd {

/// The model section of a run file, or a Hugging Face config.json, with every default resolved.
/// Keys carry Hugging Face's names; GPT-2's own (n_embd, n_layer, …) are accepted and stored here.
struct ModelConfig {
  std::string model_type;  ///< "mlp", "gpt2", "llama", "qwen2", "qwen3", "bert"
  std::string path;        ///< folder the weights are read from; empty: initialised from the seed

  // mlp
  std::vector<std::int64_t> layers;  ///< features, hidden sizes …, classes

  // transformers
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;
  std::int64_t max_position_embeddings = 0;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  ///< qkv bias: Qwen2
  bool qk_norm = false;         ///< Qwen3
  float norm_epsilon = 1e-5f;   ///< rms_norm_eps, layer_norm_epsilon, layer_norm_eps
  float initializer_range = 0.02f;
  Activation activation = Activation::silu;
  RopeSpec rope;
  float embedding_dropout = 0.0f;  ///< embd_pdrop, hidden_dropout_prob
  float attention_dropout = 0.0f;  ///< refused unless 0: attention never holds its probabilities
  float residual_dropout = 0.0f;   ///< resid_pdrop, hidden_dropout_prob

  // bert
  std::int64_t type_vocab_size = 0;
  float classifier_dropout = 0.0f;
  std::int64_t pad_token_id = 0;
  std::vector<std::string> labels;  ///< the classes' names, by id: id2label

  /// Keys of the config.json that change nothing here, such as eos_token_id, with their JSON text;
  /// they are written back with the trained model.
  std::vector<std::pair<std::string, std::string>> carried;
};

}  // namespace sherd
