#include "tests/models/tiny_models.h"

#include "core/rng.h"
#include "kernels/cross_entropy.h"

namespace sherd::testing {
namespace {

ModelConfig transformer(const std::string& type) {
  ModelConfig config;
  config.model_type = type;
  config.vocab_size = 23;
  config.hidden_size = 10;
  config.intermediate_size = 7;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 6;
  config.initializer_range = 0.25f;  // no gradient is tiny, no softmax sharp
  return config;
}

ModelConfig gpt2(bool tied) {
  ModelConfig config = transformer("gpt2");
  config.num_key_value_heads = config.num_attention_heads;
  config.head_dim = 5;
  config.max_position_embeddings = 9;
  config.activation = tied ? Activation::gelu_tanh : Activation::gelu_erf;
  config.tie_word_embeddings = tied;
  return config;
}

ModelConfig bert() {
  ModelConfig config = transformer("bert");
  config.num_key_value_heads = config.num_attention_heads;
  config.head_dim = 5;
  config.max_position_embeddings = 9;
  config.activation = Activation::gelu_erf;
  config.type_vocab_size = 3;
  config.labels = {"a", "b", "c", "d"};
  return config;
}

/// Each sample is cut behind another of its tokens; the first has none cut off.
void pad(HostBatch& batch, std::uint64_t seed) {
  const auto [samples, sequence] = batch.shape;
  for (std::int64_t b = 0; b < samples; ++b) {
    const std::int64_t valid = sequence - b % sequence;
    for (std::int64_t t = 0; t < sequence; ++t) {
      batch.mask.push_back(t < valid ? 1 : 0);
      const auto index = static_cast<std::uint64_t>(b * sequence + t);
      batch.token_types.push_back(uniform({seed, 3}, index) < 0.5f ? 0 : 2);
    }
  }
}

}  // namespace

std::vector<std::string> tiny_model_names() {
  return {"mlp", "gpt2", "gpt2 untied", "llama", "qwen2", "qwen3", "bert"};
}

ModelConfig tiny_model(const std::string& name) {
  if (name == "bert") return bert();
  if (name == "gpt2") return gpt2(true);
  if (name == "gpt2 untied") return gpt2(false);
  ModelConfig config = transformer(name);
  if (name == "mlp") config.layers = {5, 9, 4};
  if (name == "qwen2") config.attention_bias = true;
  if (name == "qwen3") config.qk_norm = true;
  return config;
}

HostBatch random_batch(const ModelConfig& config, std::int64_t samples, std::int64_t sequence,
                       std::uint64_t seed) {
  const bool mlp = config.model_type == "mlp";
  HostBatch batch;
  batch.shape = {samples, mlp ? 1 : sequence};
  const auto draw = [&](std::uint64_t purpose, std::uint64_t index, std::int64_t range) {
    return static_cast<std::int32_t>(uniform({seed, purpose}, index) * static_cast<float>(range));
  };
  const bool bert = config.model_type == "bert";
  const auto labels = static_cast<std::int64_t>(config.labels.size());
  const std::int64_t classes = mlp ? config.layers.back() : bert ? labels : config.vocab_size;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch.shape.tokens()); ++i) {
    if (!mlp) batch.tokens.push_back(draw(0, i, config.vocab_size));
    if (bert && i >= static_cast<std::uint64_t>(samples)) continue;  // one label each
    const bool ignored = i % 5 == 3;
    batch.labels.push_back(ignored ? kIgnoredLabel : draw(1, i, classes));
  }
  if (bert) pad(batch, seed);
  const std::int64_t features = mlp ? samples * config.layers.front() : 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(features); ++i) {
    batch.features.push_back(normal({seed, 2}, i));
  }
  return batch;
}

}  // namespace sherd::testing
