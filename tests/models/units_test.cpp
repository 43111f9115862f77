#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <numeric>
#include <random>

#include "models/build.h"
#include "tests/models/slopes.h"
#include "tests/models/tiny_models.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {
namespace {

std::string any_model() { return GENERATE(from_range(tiny_model_names())); }

std::uint64_t fresh_seed() { return std::random_device{}(); }

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<float> all_gradients(const UnitRunner& runner) {
  std::vector<float> all;
  for (const std::string& name : runner.names()) {
    const std::vector<float> gradient = runner.gradient(name);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

TEST_CASE("A forward pass that is run again writes the same bytes") {
  const std::string name = any_model();
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, name_of(dtype), seed);
  const ModelConfig config = tiny_model(name);
  const Model model = build_model(config);
  UnitRunner runner(model, dtype, dtype);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 3, 7, seed);
  const auto bytes = runner.forward_bytes(batch);
  REQUIRE(!bytes.empty());
  CHECK(bytes == runner.forward_bytes(batch));
}

TEST_CASE("Recomputing a unit before its backward pass changes no bit of a gradient") {
  const std::string name = any_model();
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, seed);
  ModelConfig config = tiny_model(name);
  if (name.starts_with("gpt2") || name == "bert") config.residual_dropout = 0.3f;
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 3, 7, seed);
  const auto losses = runner.train(batch, 0.5f);
  const auto gradients = all_gradients(runner);
  CHECK(losses == runner.train(batch, 0.5f, Accumulate::no, /*recompute=*/true));
  CHECK(gradients == all_gradients(runner));
}

TEST_CASE("The gradients of a batch are the sum of its samples'") {
  const std::string name = any_model();
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, seed);
  const ModelConfig config = tiny_model(name);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 3, 7, seed);
  const double loss = sum(runner.train(batch, 0.25f));
  const auto whole = all_gradients(runner);
  double parts_loss = 0.0;
  for (std::int64_t i = 0; i < batch.shape.samples; ++i) {
    parts_loss +=
        sum(runner.train(batch.samples(i, 1), 0.25f, i == 0 ? Accumulate::no : Accumulate::yes));
  }
  CHECK(std::abs(parts_loss - loss) <= 1e-5 * loss);
  CHECK(relative_distance(all_gradients(runner), whole) <= 1e-4);
}

TEST_CASE("A micro-batch without samples makes zero gradients, or adds nothing") {
  const std::string name = any_model();
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, name_of(dtype), seed);
  const ModelConfig config = tiny_model(name);
  const Model model = build_model(config);
  UnitRunner runner(model, dtype, dtype);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 2, 7, seed);
  const HostBatch nothing = batch.samples(0, 0);

  CHECK(runner.train(nothing, 1.0f).empty());
  const auto zeros = all_gradients(runner);
  CHECK(std::all_of(zeros.begin(), zeros.end(), [](float x) { return x == 0.0f; }));

  runner.train(batch, 1.0f);
  const auto gradients = all_gradients(runner);
  runner.train(nothing, 1.0f, Accumulate::yes);
  CHECK(gradients == all_gradients(runner));
  CHECK(runner.evaluate(nothing, /*keep_logits=*/true).empty());
}

TEST_CASE("Gradients are the slopes of the loss") {
  const std::string name = any_model();
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, seed);
  ModelConfig config = tiny_model(name);
  if (name == "mlp") config.layers = {5, 4};  // a kink of the ReLU has no slope
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 2, 5, seed);
  check_slopes(runner, batch, seed);
}

TEST_CASE("Logits are those that the losses come from") {
  const std::string name = any_model();
  const std::uint64_t seed = fresh_seed();
  CAPTURE(name, seed);
  const ModelConfig config = tiny_model(name);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 2, 5, seed);
  const std::vector<float> losses = runner.evaluate(batch, /*keep_logits=*/true);
  const auto classes = static_cast<std::size_t>(model.sample.label_range);
  REQUIRE(runner.logits().size() == losses.size() * classes);
  for (std::size_t row = 0; row < losses.size(); ++row) {
    if (batch.labels[row] < 0) continue;
    const float* logits = runner.logits().data() + row * classes;
    double total = 0.0;
    for (std::size_t i = 0; i < classes; ++i) total += std::exp(static_cast<double>(logits[i]));
    const double expected = std::log(total) - static_cast<double>(logits[batch.labels[row]]);
    CHECK(std::abs(static_cast<double>(losses[row]) - expected) <= 1e-5 * (1.0 + expected));
  }
  CHECK(losses == runner.evaluate(batch));
}

TEST_CASE("Padding in front of a sample changes none of its losses") {
  const std::uint64_t seed = fresh_seed();
  CAPTURE(seed);
  const std::string name = GENERATE("llama", "qwen2", "qwen3");
  const ModelConfig config = tiny_model(name);
  const Model model = build_model(config);
  UnitRunner runner(model, DType::f32, DType::f32);
  runner.initialize(seed);
  const HostBatch batch = random_batch(config, 1, 5, seed);
  const std::int64_t padding = 2;
  HostBatch padded = random_batch(config, 1, 5 + padding, seed + 1);
  std::copy(batch.tokens.begin(), batch.tokens.end(), padded.tokens.begin() + padding);
  std::copy(batch.labels.begin(), batch.labels.end(), padded.labels.begin() + padding);
  padded.mask.assign(padded.tokens.size(), 1);
  std::fill_n(padded.mask.begin(), padding, 0);
  std::fill_n(padded.labels.begin(), padding, -100);

  const std::vector<float> expected = runner.train(batch, 1.0f);
  const std::vector<float> gradients = all_gradients(runner);
  const std::vector<float> losses = runner.train(padded, 1.0f);
  CHECK(relative_distance({losses.begin() + padding, losses.end()}, expected) <= 1e-5);
  CHECK(relative_distance(all_gradients(runner), gradients) <= 1e-4);
}

}  // namespace
}  // namespace sherd::testing
