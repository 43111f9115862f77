#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "models/build.h"
#include "tests/models/tiny_models.h"
#include "tests/models/unit_runner.h"

using Catch::Matchers::ContainsSubstring;

namespace sherd::testing {
namespace {

std::uint64_t fresh_seed() { return std::random_device{}(); }

std::vector<std::vector<float>> gradients_of(const UnitRunner& runner) {
  std::vector<std::vector<float>> gradients;
  for (const std::string& name : runner.names()) gradients.push_back(runner.gradient(name));
  return gradients;
}

/// A BERT with the parameters of a fresh seed.
struct TinyBert {
  explicit TinyBert(DType dtype = DType::f32)
      : model(build_model(config)), runner(model, dtype, dtype) {
    runner.initialize(seed);
  }

  std::uint64_t seed = fresh_seed();
  ModelConfig config = tiny_model("bert");
  Model model;
  UnitRunner runner;
};

/// `batch` with `more` tokens behind each sample, all padding.
HostBatch longer(const HostBatch& batch, std::int64_t more) {
  HostBatch padded = batch;
  padded.shape.sequence += more;
  padded.tokens.clear();
  padded.mask.clear();
  padded.token_types.clear();
  for (std::int64_t i = 0; i < padded.shape.tokens(); ++i) {
    const std::int64_t t = i % padded.shape.sequence;
    const bool old = t < batch.shape.sequence;
    const auto from =
        static_cast<std::size_t>(i / padded.shape.sequence * batch.shape.sequence + (old ? t : 0));
    padded.tokens.push_back(old ? batch.tokens[from] : 1);
    padded.mask.push_back(old ? batch.mask[from] : 0);
    padded.token_types.push_back(old ? batch.token_types[from] : 1);
  }
  return padded;
}

TEST_CASE("What padding holds changes no bit of a BERT's losses, logits and gradients") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  TinyBert bert(dtype);
  CAPTURE(bert.seed, name_of(dtype));
  HostBatch batch = random_batch(bert.config, 4, 7, bert.seed);
  REQUIRE(std::count(batch.mask.begin(), batch.mask.end(), 0) > 0);
  const std::vector<float> losses = bert.runner.train(batch, 1.0f);
  const auto gradients = gradients_of(bert.runner);
  bert.runner.evaluate(batch, /*keep_logits=*/true);
  const std::vector<float> logits = bert.runner.logits();
  for (std::size_t i = 0; i < batch.mask.size(); ++i) {
    if (batch.mask[i] == 1) continue;
    batch.tokens[i] = (batch.tokens[i] + 11) % 23;
    batch.token_types[i] = 1;
  }
  CHECK(bert.runner.train(batch, 1.0f) == losses);
  CHECK(gradients_of(bert.runner) == gradients);
  bert.runner.evaluate(batch, /*keep_logits=*/true);
  CHECK(bert.runner.logits() == logits);
}

TEST_CASE("How much padding there is changes a BERT's losses and gradients by rounding at most") {
  TinyBert bert;
  CAPTURE(bert.seed);
  const HostBatch batch = random_batch(bert.config, 4, 6, bert.seed);
  const std::vector<float> losses = bert.runner.train(batch, 1.0f);
  const auto gradients = gradients_of(bert.runner);
  CHECK(relative_distance(bert.runner.train(longer(batch, 3), 1.0f), losses) <= 1e-5);
  const std::vector<std::string> names = bert.runner.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    const auto ruler = std::find(names.begin(), names.end(), ruler_of(names[i])) - names.begin();
    CHECK(distance_against(bert.runner.gradient(names[i]), gradients[i],
                           gradients[static_cast<std::size_t>(ruler)]) <= 1e-4);
  }
}

TEST_CASE("A BERT whose tokens have no types is one whose tokens are of type 0") {
  TinyBert bert;
  CAPTURE(bert.seed);
  HostBatch batch = random_batch(bert.config, 3, 7, bert.seed);
  std::fill(batch.token_types.begin(), batch.token_types.end(), 0);
  const std::vector<float> losses = bert.runner.train(batch, 1.0f);
  const std::string types = "bert.embeddings.token_type_embeddings.weight";
  const std::vector<float> gradient = bert.runner.gradient(types);
  batch.token_types.clear();
  CHECK(bert.runner.train(batch, 1.0f) == losses);
  CHECK(relative_distance(bert.runner.gradient(types), gradient) <= 1e-5);
  const auto width = static_cast<std::ptrdiff_t>(bert.config.hidden_size);
  CHECK(std::all_of(gradient.begin() + width, gradient.end(), [](float x) { return x == 0.0f; }));
}

TEST_CASE("A BERT's tokens see those behind them") {
  TinyBert bert;
  CAPTURE(bert.seed);
  HostBatch batch = random_batch(bert.config, 1, 7, bert.seed);
  const std::vector<float> losses = bert.runner.evaluate(batch);
  batch.tokens.back() = (batch.tokens.back() + 1) % 23;
  CHECK(bert.runner.evaluate(batch) != losses);
}

TEST_CASE("A BERT has Hugging Face's parameters, shapes and starts") {
  const ModelConfig config = tiny_model("bert");
  const Model model = build_model(config);
  CHECK(model.max_sequence == 9);
  CHECK(!model.sample.label_per_token);
  CHECK(model.sample.label_range == 4);
  CHECK(model.sample.token_types == 3);
  REQUIRE(model.units.size() == 4);
  CHECK(model.units[0]->name() == "embedding");
  CHECK(model.units[2]->name() == "block.1");
  CHECK(model.units[3]->name() == "head");
  std::map<std::string, ParameterSpec> specs;
  for (const auto& unit : model.units) {
    for (const ParameterSpec& spec : unit->parameters()) specs[spec.name] = spec;
  }
  CHECK(specs.size() == 3 + 2 + 2 * 12 + 4);
  const std::string layer = "bert.encoder.layer.1.";
  CHECK(specs.at("bert.embeddings.word_embeddings.weight").shape == Shape{23, 10});
  CHECK(specs.at("bert.embeddings.token_type_embeddings.weight").shape == Shape{3, 10});
  CHECK(specs.at(layer + "attention.self.qkv.weight").shape == Shape{30, 10});
  CHECK(specs.at(layer + "attention.self.qkv.bias").parts[1].name ==
        layer + "attention.self.key.bias");
  CHECK(specs.at(layer + "attention.output.dense.weight").init.scale == config.initializer_range);
  CHECK(specs.at(layer + "intermediate.dense.weight").shape == Shape{7, 10});
  CHECK(specs.at(layer + "output.dense.bias").init.kind == Init::Kind::zeros);
  CHECK(specs.at(layer + "attention.output.LayerNorm.weight").init.kind == Init::Kind::ones);
  CHECK(!specs.at(layer + "output.LayerNorm.bias").decay);
  CHECK(specs.at("bert.pooler.dense.weight").shape == Shape{10, 10});
  CHECK(specs.at("classifier.weight").shape == Shape{4, 10});
  CHECK(specs.at("classifier.bias").shape == Shape{4});
}

TEST_CASE("A BERT's flops count all pairs of tokens, and its head once a sample") {
  const Model model = build_model(tiny_model("bert"));
  const BatchShape shape{.samples = 3, .sequence = 5};
  CHECK(model.units[0]->forward_flops(shape) == 0.0);
  const double products = 2.0 * 15 * (10 * 30 + 10 * 10 + 2 * 10 * 7);
  CHECK(model.units[1]->forward_flops(shape) == products + 4.0 * 3 * 25 * 10);
  CHECK(model.units.back()->forward_flops(shape) == 2.0 * 3 * (10 * 10 + 10 * 4));
}

TEST_CASE("What a BERT does not support is refused by key") {
  const auto refusal = [](auto change) {
    ModelConfig config = tiny_model("bert");
    change(config);
    return config;
  };
  using Config = ModelConfig;
  const auto check = [](const Config& config, const std::string& part) {
    CHECK_THROWS_WITH(build_model(config), ContainsSubstring(part));
  };
  check(refusal([](Config& c) { c.labels = {"a"}; }), "id2label");
  check(refusal([](Config& c) { c.type_vocab_size = 0; }), "type_vocab_size");
  check(refusal([](Config& c) { c.attention_dropout = 0.1f; }), "attention_probs_dropout_prob");
  check(refusal([](Config& c) { c.classifier_dropout = 1.0f; }), "in [0, 1)");
  check(refusal([](Config& c) { c.hidden_size = 9; }), "num_attention_heads");
  check(refusal([](Config& c) { c.max_position_embeddings = 0; }), "max_position_embeddings");
}

}  // namespace
}  // namespace sherd::testing
