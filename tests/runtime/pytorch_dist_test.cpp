#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <map>

#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/model_fixture.h"
#include "tests/models/unit_runner.h"
#include "tests/runtime/gpu_world.h"
#include "tests/runtime/training.h"

// What PyTorch computed alone, Sherd computes on any number of ranks at any stage: loss, gradients,
// and ten steps of AdamW with accumulation and clipping.

using namespace sherd;
using namespace sherd::testing;
using sherd::test::make_gpu_world;
using sherd::test::make_world;

namespace {

constexpr double kLossTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;

using NamedValues = std::map<std::string, std::vector<float>>;

/// Splits fused parameters into the parts that model folders know.
ParameterSink into(NamedValues& values) {
  return [&values](const ParameterSpec& spec, const Tensor& tensor) {
    const float* data = tensor.as<float>();
    if (spec.parts.empty()) values[spec.name].assign(data, data + tensor.numel());
    const std::int64_t row = spec.parts.empty() ? 0 : tensor.numel() / spec.shape[0];
    for (const ParameterPart& part : spec.parts) {
      values[part.name].assign(data, data + part.rows * row);
      data += part.rows * row;
    }
  };
}

ParameterSource from(const ModelFixture& fixture) {
  return [&fixture](const ParameterSpec& spec, Shard range, std::span<float> out) {
    std::vector<float> whole;
    if (spec.parts.empty()) whole = fixture.initial(spec.name);
    for (const ParameterPart& part : spec.parts) {
      const std::vector<float> values = fixture.initial(part.name);
      whole.insert(whole.end(), values.begin(), values.end());
    }
    std::copy_n(whole.begin() + range.offset, range.numel, out.begin());
  };
}

EngineOptions options_for(const ModelFixture& fixture, int ranks) {
  const HostBatch batch = fixture.batch(0);
  EngineOptions options;
  options.plan.rounds = static_cast<int>((batch.shape.samples + ranks - 1) / ranks);
  options.plan.optimizer.lr = 1e-3;
  options.plan.optimizer.beta1 = 0.9;
  options.plan.optimizer.beta2 = 0.95;
  options.plan.optimizer.epsilon = 1e-8;
  options.plan.optimizer.weight_decay = 0.1;
  options.gradient_clipping = 1.0;
  options.largest_micro_batch = {1, batch.shape.sequence};
  options.labels_per_step = static_cast<std::int64_t>(batch.labels.size());
  return options;
}

void check_training(const std::string& name, int stage, bool exact, Communicator& world) {
  CAPTURE(name, stage, exact);
  const ModelFixture fixture(SHERD_MODEL_FIXTURES, name);
  EngineOptions options = options_for(fixture, world.size());
  options.plan.stage = stage;
  options.plan.exact = exact;
  Engine engine(build_model(fixture.config()), options, world);
  engine.load_parameters(from(fixture));
  const auto relative = [](double value, double expected) {
    return std::abs(value - expected) / std::abs(expected);
  };
  for (std::int64_t s = 0; s < fixture.steps(); ++s) {
    const StepResult result = step_over(engine, fixture.batch(s), world);
    const auto i = static_cast<std::size_t>(s);
    CHECK(relative(result.loss, fixture.step_losses()[i]) <= kLossTolerance);
    CHECK(relative(result.gradient_norm, fixture.gradient_norms()[i]) <= kGradientTolerance);
    if (s > 0) continue;
    NamedValues gradients;
    engine.save_gradients(into(gradients));
    for (const auto& [parameter, values] : gradients) {
      CAPTURE(parameter);
      CHECK(distance_against(values, fixture.gradient(parameter),
                             fixture.gradient(ruler_of(parameter))) <= kGradientTolerance);
    }
  }
  NamedValues parameters;
  engine.save_parameters(into(parameters));
  if (world.rank() == 0) CHECK(parameters.size() == fixture.parameter_names().size());
  for (const auto& [parameter, values] : parameters) {
    CAPTURE(parameter);
    // Adam turns the rounding of gradients that are nearly zero into steps; the fixture says how
    // far that took PyTorch itself.
    const double bound = kGradientTolerance + 4.0 * fixture.final_noise(parameter);
    CHECK(relative_distance(values, fixture.final_parameter(parameter)) <= bound);
  }
}

}  // namespace

TEST_CASE("Loss, gradients and ten AdamW steps are PyTorch's, at every stage", "[dist]") {
  const std::string name = GENERATE(from_range(ModelFixture::names()));
  const int stage = GENERATE(0, 1, 2, 3);
  const bool exact = GENERATE(false, true);
  check_training(name, stage, exact, *make_world());
}

TEST_CASE("Loss, gradients and ten AdamW steps on GPUs are PyTorch's", "[gpu][dist]") {
  const auto control = make_world();
  const auto gpus = make_gpu_world(*control);
  for (const std::string& name : ModelFixture::names()) {
    check_training(name, 0, false, *gpus);
    check_training(name, 3, false, *gpus);
  }
  check_training("llama", 2, true, *gpus);
}
