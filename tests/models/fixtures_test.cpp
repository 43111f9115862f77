#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <numeric>

#include "models/build.h"
#include "tests/models/model_fixture.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {
namespace {

constexpr double kLossTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;

std::string any_fixture() { return GENERATE(from_range(ModelFixture::names())); }

void load(UnitRunner& runner, const ModelFixture& fixture) {
  for (const std::string& name : fixture.parameter_names()) {
    runner.set_parameter(name, fixture.initial(name));
  }
}

double mean(const std::vector<float>& losses, const HostBatch& batch) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) /
         static_cast<double>(batch.valid_labels());
}

void require_gradients(const UnitRunner& runner, const ModelFixture& fixture) {
  for (const std::string& name : fixture.parameter_names()) {
    CAPTURE(name);
    CHECK(distance_against(runner.gradient(name), fixture.gradient(name),
                           fixture.gradient(ruler_of(name))) <= kGradientTolerance);
  }
}

/// Roundings of one value on its way through a fixture's two layers and back: about 25 tensors each
/// way, whose errors add like a random walk, and as much again for what a layer amplifies.
double bound_for(DType dtype) {
  const double unit_roundoff = dtype == DType::bf16 ? 0x1p-9 : 0x1p-12;
  return 2.0 * std::sqrt(50.0) * unit_roundoff;
}

TEST_CASE("A model has the parameters of its Hugging Face folder, and no others") {
  const std::string name = any_fixture();
  CAPTURE(name);
  const ModelFixture fixture(SHERD_TEST_DATA, name);
  const Model model = build_model(fixture.config());
  std::vector<std::string> names = UnitRunner(model, DType::f32, DType::f32).names();
  std::sort(names.begin(), names.end());
  CHECK(names == fixture.parameter_names());
}

TEST_CASE("Loss and every gradient are PyTorch's") {
  const std::string name = any_fixture();
  CAPTURE(name);
  const ModelFixture fixture(SHERD_TEST_DATA, name);
  const Model model = build_model(fixture.config());
  UnitRunner runner(model, DType::f32, DType::f32);
  load(runner, fixture);
  const HostBatch batch = fixture.batch(0);
  const auto scale = 1.0f / static_cast<float>(batch.valid_labels());
  const double expected = fixture.loss();

  const std::vector<float> losses = runner.train(batch, scale);
  CHECK(std::abs(mean(losses, batch) - expected) <= kLossTolerance * expected);
  CHECK(relative_distance(losses, fixture.losses()) <= kLossTolerance);
  require_gradients(runner, fixture);

  const std::vector<float> evaluated = runner.evaluate(batch);
  CHECK(std::abs(mean(evaluated, batch) - expected) <= kLossTolerance * expected);
}

TEST_CASE("Two micro-batches that add their gradients give PyTorch's") {
  const std::string name = any_fixture();
  CAPTURE(name);
  const ModelFixture fixture(SHERD_TEST_DATA, name);
  const Model model = build_model(fixture.config());
  UnitRunner runner(model, DType::f32, DType::f32);
  load(runner, fixture);
  const HostBatch batch = fixture.batch(0);
  const auto scale = 1.0f / static_cast<float>(batch.valid_labels());
  const std::int64_t half = batch.shape.samples / 2;
  runner.train(batch.samples(0, half), scale);
  runner.train(batch.samples(half, half), scale, Accumulate::yes);
  require_gradients(runner, fixture);
}

TEST_CASE("In 16 bits losses and gradients stay within rounding of those in 32") {
  const std::string name = any_fixture();
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  const DType gradient = GENERATE(DType::f32, DType::bf16);
  CAPTURE(name, name_of(dtype), name_of(gradient));
  const ModelFixture fixture(SHERD_TEST_DATA, name);
  const Model model = build_model(fixture.config());
  UnitRunner narrow(model, dtype, gradient == DType::f32 ? gradient : dtype);
  load(narrow, fixture);
  UnitRunner wide(model, DType::f32, DType::f32);
  for (const std::string& parameter : wide.names()) {
    wide.set_parameter(parameter, narrow.parameter(parameter));
  }
  const HostBatch batch = fixture.batch(0);
  const double expected = mean(wide.train(batch, 1.0f), batch);
  const double loss = mean(narrow.train(batch, 1.0f), batch);
  CHECK(std::abs(loss - expected) <= bound_for(dtype) * expected);
  std::vector<float> narrow_gradients;
  std::vector<float> wide_gradients;
  for (const std::string& parameter : wide.names()) {
    CAPTURE(parameter);
    const std::vector<float> a = narrow.gradient(parameter);
    const std::vector<float> b = wide.gradient(parameter);
    constexpr double kCancellation = 8.0;  // a bias of q or k sums rows that cancel to a small rest
    CHECK(distance_against(a, b, wide.gradient(ruler_of(parameter))) <=
          kCancellation * bound_for(dtype));
    narrow_gradients.insert(narrow_gradients.end(), a.begin(), a.end());
    wide_gradients.insert(wide_gradients.end(), b.begin(), b.end());
  }
  CHECK(relative_distance(narrow_gradients, wide_gradients) <= bound_for(dtype));
}

}  // namespace
}  // namespace sherd::testing
