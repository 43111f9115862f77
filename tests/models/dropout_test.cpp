#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

#include "models/build.h"
#include "tests/models/slopes.h"
#include "tests/models/tiny_models.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {
namespace {

ModelConfig dropping(const std::string& model, float embedding, float residual) {
  ModelConfig config = tiny_model(model);
  if (model == "bert") config.classifier_dropout = residual;
  config.embedding_dropout = embedding;
  config.residual_dropout = residual;
  return config;
}

TEST_CASE("Dropout masks do not depend on how a batch is split") {
  const std::uint64_t seed = std::random_device{}();
  const std::string name = GENERATE("gpt2", "bert");
  CAPTURE(seed, name);
  const ModelConfig config = dropping(name, 0.2f, 0.4f);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 4, 7, seed);
  const std::vector<float> whole = runner.train(batch, 1.0f);
  std::vector<std::vector<float>> gradients;
  for (const std::string& parameter : runner.names()) {
    gradients.push_back(runner.gradient(parameter));
  }

  std::vector<float> parts = runner.train(batch.samples(0, 1), 1.0f);
  const std::vector<float> rest = runner.train(batch.samples(1, 3), 1.0f, Accumulate::yes);
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK(relative_distance(parts, whole) <= 1e-5);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CAPTURE(runner.names()[i]);
    CHECK(distance_against(runner.gradient(runner.names()[i]), gradients[i],
                           runner.gradient(ruler_of(runner.names()[i]))) <= 1e-4);
  }
}

TEST_CASE("Another place in the batch, another step and another site draw other masks") {
  const std::uint64_t seed = std::random_device{}();
  const std::string name = GENERATE("gpt2", "bert");
  CAPTURE(seed, name);
  const bool embedding = GENERATE(true, false);
  const ModelConfig config = embedding ? dropping(name, 0.5f, 0.0f) : dropping(name, 0.0f, 0.5f);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  HostBatch batch = random_batch(config, 2, 7, seed);
  const std::vector<float> losses = runner.train(batch, 1.0f);
  batch.first_sample = 1;
  CHECK(relative_distance(runner.train(batch, 1.0f), losses) > 1e-2);
  batch.first_sample = 0;
  runner.rng.rng.sequence += 1000;
  CHECK(relative_distance(runner.train(batch, 1.0f), losses) > 1e-2);
}

TEST_CASE("Evaluation drops nothing") {
  const std::uint64_t seed = std::random_device{}();
  const std::string name = GENERATE("gpt2", "bert");
  CAPTURE(seed, name);
  const ModelConfig config = dropping(name, 0.3f, 0.3f);
  const HostBatch batch = random_batch(config, 2, 7, seed);
  const Model with = build_model(config);
  const Model without = build_model(tiny_model(name));
  UnitRunner dropped(with, DType::f32, DType::f32);
  UnitRunner kept(without, DType::f32, DType::f32);
  dropped.initialize(seed);
  kept.initialize(seed);
  CHECK(dropped.evaluate(batch) == kept.evaluate(batch));
  CHECK(dropped.train(batch, 1.0f) != kept.train(batch, 1.0f));
}

TEST_CASE("Gradients go through the masks that the forward pass drew") {
  const std::uint64_t seed = std::random_device{}();
  const std::string name = GENERATE("gpt2", "bert");
  CAPTURE(seed, name);
  const ModelConfig config = dropping(name, 0.3f, 0.3f);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 2, 5, seed);
  check_slopes(runner, batch, seed);
}

}  // namespace
}  // namespace sherd::testing
