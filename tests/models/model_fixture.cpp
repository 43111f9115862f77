#include "tests/models/model_fixture.h"

#include <cstring>

#include "runtime/config/load.h"

namespace sherd::testing {
namespace {

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
  return {"gpt2", "llama", "llama_untied", "qwen2", "qwen3", "mlp", "bert"};
}

ModelFixture::ModelFixture(const std::string& fixtures, const std::string& name)
    : config_(load_model_config(fixtures + "/" + name, ModelUse::training)),
      model_(fixtures + "/" + name),
      batches_(fixtures + "/" + name + "/batch.safetensors"),
      expected_(fixtures + "/" + name + "/expected.safetensors"),
      steps_(batches_.find("inputs")->shape.front()) {}

std::vector<float> ModelFixture::initial(const std::string& parameter) const {
  const StoredTensor* tensor = model_.find(parameter);
  require(tensor != nullptr, "{} has no {}", model_.folder(), parameter);
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
  const std::int64_t labels = batches_.find("labels")->numel / steps_;
  batch.labels = read_integers(batches_, "labels", {step * labels, labels});
  if (batches_.find("mask") != nullptr) {
    batch.mask = read_integers(batches_, "mask", {step * numel, numel});
    batch.token_types = read_integers(batches_, "token_types", {step * numel, numel});
  }
  return batch;
}

std::vector<float> ModelFixture::expected(const std::string& tensor) const {
  return read_floats(expected_, tensor);
}

}  // namespace sherd::testing
