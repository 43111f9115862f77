#include "tests/models/model_fixture.h"

#include <cstring>

namespace sherd::testing {
namespace {

constexpr std::int64_t kVocabulary = 101;

ModelConfig transformer(const std::string& type, std::int64_t hidden, int heads, int kv_heads,
                        int head_dim, bool tied) {
  ModelConfig config;
  config.model_type = type;
  config.vocab_size = kVocabulary;
  config.hidden_size = hidden;
  config.intermediate_size = 53;
  config.num_hidden_layers = 2;
  config.num_attention_heads = heads;
  config.num_key_value_heads = kv_heads;
  config.head_dim = head_dim;
  config.tie_word_embeddings = tied;
  config.norm_epsilon = 1e-6f;
  return config;
}

ModelConfig gpt2() {
  ModelConfig config = transformer("gpt2", 28, 4, 4, 7, true);
  config.max_position_embeddings = 13;
  config.norm_epsilon = 1e-5f;
  config.activation = Activation::gelu_tanh;
  return config;
}

ModelConfig llama_untied() {
  ModelConfig config = transformer("llama", 28, 4, 2, 6, false);
  config.norm_epsilon = 1e-5f;
  config.rope = {.theta = 500.0,
                 .scaling = RopeSpec::Scaling::llama3,
                 .factor = 4.0,
                 .low_frequency_factor = 1.0,
                 .high_frequency_factor = 4.0,
                 .original_max_positions = 16};
  return config;
}

ModelConfig qwen2() {
  ModelConfig config = transformer("qwen2", 30, 3, 3, 10, true);
  config.attention_bias = true;
  return config;
}

ModelConfig qwen3() {
  ModelConfig config = transformer("qwen3", 29, 4, 2, 6, false);
  config.qk_norm = true;
  return config;
}

ModelConfig mlp() {
  ModelConfig config;
  config.model_type = "mlp";
  config.layers = {37, 53, 29, 11};
  return config;
}

ModelConfig config_of(const std::string& name) {
  if (name == "gpt2") return gpt2();
  if (name == "llama") return transformer("llama", 30, 3, 1, 10, true);
  if (name == "llama_untied") return llama_untied();
  if (name == "qwen2") return qwen2();
  if (name == "qwen3") return qwen3();
  if (name == "mlp") return mlp();
  throw ArgumentError(fmt::format("no fixture {}", name));
}

std::vector<float> read_floats(const SafetensorsFile& file, const std::string& name, Shard range) {
  const StoredTensor* tensor = file.find(name);
  require(tensor != nullptr, "{} has no {}", file.path(), name);
  std::vector<float> values(static_cast<std::size_t>(range.numel));
  file.read(*tensor, range, values);
  return values;
}

std::vector<float> read_floats(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  require(tensor != nullptr, "{} has no {}", file.path(), name);
  return read_floats(file, name, {0, tensor->numel});
}

std::vector<std::int32_t> read_integers(const SafetensorsFile& file, const std::string& name,
                                        Shard range) {
  const StoredTensor* tensor = file.find(name);
  require(tensor != nullptr && tensor->type->dtype == DType::i32, "{} has no i32 {}", file.path(),
          name);
  std::vector<std::int32_t> values(static_cast<std::size_t>(range.numel));
  const auto bytes = file.bytes(*tensor);
  std::memcpy(values.data(),
              bytes.data() + static_cast<std::size_t>(range.offset) * sizeof(std::int32_t),
              values.size() * sizeof(std::int32_t));
  return values;
}

}  // namespace

std::vector<std::string> ModelFixture::names() {
  return {"gpt2", "llama", "llama_untied", "qwen2", "qwen3", "mlp"};
}

ModelFixture::ModelFixture(const std::string& fixtures, const std::string& name)
    : config_(config_of(name)),
      model_(fixtures + "/" + name),
      batches_(fixtures + "/" + name + "/batch.safetensors"),
      expected_(fixtures + "/" + name + "/expected.safetensors"),
      steps_(batches_.find("inputs")->shape.front()) {
  config_.path = fixtures + "/" + name;
}

std::vector<float> ModelFixture::initial(const std::string& parameter) const {
  const StoredTensor* tensor = model_.find(parameter);
  require(tensor != nullptr, "{} has no {}", config_.path, parameter);
  std::vector<float> values(static_cast<std::size_t>(tensor->numel));
  model_.read(parameter, {0, tensor->numel}, values);
  return values;
}

HostBatch ModelFixture::batch(std::int64_t step) const {
  const std::vector<std::int64_t>& inputs = batches_.find("inputs")->shape;  // steps, samples, …
  const std::int64_t numel = inputs[1] * inputs[2];
  HostBatch batch;
  if (config_.model_type == "mlp") {
    batch.shape = {inputs[1], 1};
    batch.features = read_floats(batches_, "inputs", {step * numel, numel});
  } else {
    batch.shape = {inputs[1], inputs[2]};
    batch.tokens = read_integers(batches_, "inputs", {step * numel, numel});
  }
  const std::int64_t labels = batch.shape.tokens();
  batch.labels = read_integers(batches_, "labels", {step * labels, labels});
  return batch;
}

std::vector<float> ModelFixture::expected(const std::string& tensor) const {
  return read_floats(expected_, tensor);
}

}  // namespace sherd::testing
