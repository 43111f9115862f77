#include "runtime/engine.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "collectives/solo.h"
#include "core/error.h"
#include "models/build.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/training.h"

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Training makes the loss fall, for every model") {
  const std::string name = GENERATE(from_range(tiny_model_names()));
  CAPTURE(name);
  TrainingCase training = training_case(name);
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.plan.rounds = 1;
  options.gradient_clipping = 0.0;
  options.largest_micro_batch = {4, name == "mlp" ? 1 : 7};
  options.labels_per_step = 4 * options.largest_micro_batch.sequence;
  Engine engine(build_model(training.model), options, solo);
  HostBatch batch = random_batch(training.model, 4, 7, 3);
  const MicroBatch micro = view_of(batch);
  const double before = engine.step({&micro, 1}).loss;
  double after = before;
  for (int step = 0; step < 40; ++step) after = engine.step({&micro, 1}).loss;
  CHECK(std::isfinite(after));
  CHECK(after < 0.6 * before);
  CHECK(engine.applied_steps() == 41);
}

TEST_CASE("In exact mode the cut into micro-batches of a step's ranks and options change no bit") {
  const std::string name = GENERATE(from_range(tiny_model_names()));
  CAPTURE(name);
  TrainingCase training = training_case(name);
  training.options.plan.exact = true;
  const Trained reference = train_alone(training);
  REQUIRE(reference.steps.back().applied);
  SECTION("recompute") {
    training.options.plan.recompute.assign(build_model(training.model).units.size(), true);
    CHECK(train_alone(training).parameters == reference.parameters);
  }
  SECTION("random pauses on every stream") {
    training.options.delays = {200, 5};
    CHECK(train_alone(training).parameters == reference.parameters);
  }
  SECTION("the same run again") { CHECK(train_alone(training).parameters == reference.parameters); }
  SECTION("fast mode agrees to rounding") {
    training.options.plan.exact = false;
    CHECK(distance(train_alone(training), reference) < 1e-5);
  }
}

TEST_CASE("The predicted peak is what the engine takes, and a step takes no more") {
  TrainingCase training = training_case("llama");
  training.options.plan.exact = GENERATE(false, true);
  training.options.plan.compute = GENERATE(DType::f32, DType::bf16, DType::f16);
  training.options.plan.wire = training.options.plan.compute;
  const Trained trained = train_alone(training);
  CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
}

TEST_CASE("Half precision trains like single precision, within its rounding") {
  TrainingCase training = training_case(GENERATE("mlp", "llama", "gpt2", "bert"));
  training.options.plan.compute = GENERATE(DType::bf16, DType::f16);
  training.options.plan.wire = training.options.plan.compute;
  training.options.loss_scale.initial_scale_power = 8;
  const Trained half = train_alone(training);
  training.options.plan.compute = training.options.plan.wire = DType::f32;
  const Trained single = train_alone(training);
  REQUIRE(half.steps.size() == single.steps.size());
  for (std::size_t s = 0; s < half.steps.size(); ++s) {
    CHECK(half.steps[s].applied);
    CHECK(std::abs(half.steps[s].loss - single.steps[s].loss) < 0.03 * single.steps[s].loss);
  }
}

TEST_CASE("The labels that a classifier guesses are counted where it is evaluated") {
  const std::string name = GENERATE("mlp", "bert");
  TrainingCase training = training_case(name);
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.largest_micro_batch = {40, name == "mlp" ? 1 : 7};
  options.labels_per_step = 40;
  Engine engine(build_model(training.model), options, solo);
  HostBatch batch = random_batch(training.model, 40, 7, 3);
  const std::vector<MicroBatch> twice(2, view_of(batch));
  for (int step = 0; step < 10; ++step) engine.step({twice.data(), 1});

  UnitRunner runner(engine.model(), DType::f32, DType::f32);
  engine.save_parameters([&](const ParameterSpec& spec, const Tensor& values) {
    runner.set_parameter(spec.name, {values.as<float>(), static_cast<std::size_t>(values.numel())});
  });
  runner.evaluate(batch, /*keep_logits=*/true);
  const std::int64_t classes = engine.model().sample.label_range;
  std::int64_t correct = 0;
  for (std::size_t row = 0; row < batch.labels.size(); ++row) {
    const auto first = runner.logits().begin() + static_cast<std::int64_t>(row) * classes;
    correct += std::max_element(first, first + classes) - first == batch.labels[row] ? 1 : 0;
  }
  CHECK(correct > 0);
  CHECK(correct < batch.valid_labels());
  const Evaluation evaluation = engine.evaluate(twice);
  CHECK(evaluation.labels == 2 * batch.valid_labels());
  CHECK(evaluation.correct == 2 * correct);
}

TEST_CASE("A step of no labels is skipped and changes nothing") {
  TrainingCase training = training_case("llama");
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.largest_micro_batch = {2, 7};
  options.labels_per_step = 14;
  Engine engine(build_model(training.model), options, solo);
  const StepResult result = engine.step({});
  CHECK_FALSE(result.applied);
  CHECK_THAT(result.skipped_because, ContainsSubstring("no rank had a label"));
  CHECK(engine.applied_steps() == 0);
}

TEST_CASE("An engine tells what its kernels take, once for all blocks alike") {
  TrainingCase training = training_case("llama");
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.plan.rounds = 2;
  options.largest_micro_batch = {2, 7};
  options.labels_per_step = 28;
  Engine engine(build_model(training.model), options, solo);
  HostBatch batch = random_batch(training.model, 2, 7, 3);
  const std::vector<MicroBatch> micro(2, view_of(batch));
  engine.step(micro);
  CHECK(engine.chosen_kernels(micro) ==
        std::vector<std::string>{"attention by tiles through CBLAS"});
  CHECK(engine.chosen_kernels({}).empty());
}

TEST_CASE("More micro-batches than the plan has are refused") {
  TrainingCase training = training_case("mlp");
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.largest_micro_batch = {2, 1};
  options.labels_per_step = 2;
  Engine engine(build_model(training.model), options, solo);
  const std::vector<MicroBatch> two(2);
  CHECK_THROWS_WITH(engine.step(two), ContainsSubstring("1 micro-batches a step, got 2"));
}

TEST_CASE("A micro-batch larger than the plan's is refused") {
  TrainingCase training = training_case("llama");
  SoloCommunicator solo;
  EngineOptions options = training.options;
  options.largest_micro_batch = {2, 7};
  options.labels_per_step = 14;
  Engine engine(build_model(training.model), options, solo);
  HostBatch batch = random_batch(training.model, 3, 7, 1);
  const MicroBatch micro = view_of(batch);
  CHECK_THROWS_WITH(engine.step({&micro, 1}), ContainsSubstring("up to 2 x 7, got 3 x 7"));
}

TEST_CASE("An engine refuses optimizers and schedules that can't be followed") {
  SoloCommunicator solo;
  EngineOptions options = training_case("mlp").options;
  options.largest_micro_batch = {2, 1};
  options.labels_per_step = 2;
  SECTION("optimizer") { options.plan.optimizer.beta1 = 1.5; }
  SECTION("schedule") {
    options.schedule.type = ScheduleSpec::Type::linear;
    options.schedule.total_num_steps = 0;
  }
  CHECK_THROWS_AS(Engine(build_model(tiny_model("mlp")), options, solo), ArgumentError);
}

TEST_CASE("Parameters of more elements than are staged at once are set whole, and in order") {
  constexpr std::int64_t kWide = 2100;  // 4.4 M elements, a little over 2^22
  constexpr std::int64_t kPeriod = 251;
  TrainingCase training = training_case("mlp");
  training.model.layers = {kWide, kWide, 3};
  training.options.plan.compute = GENERATE(DType::f32, DType::bf16);
  training.options.plan.wire = training.options.plan.compute;
  training.options.largest_micro_batch = {1, 1};
  training.options.labels_per_step = 1;
  SoloCommunicator solo;
  Engine engine(build_model(training.model), training.options, solo);
  engine.load_parameters([](const ParameterSpec&, Shard range, std::span<float> values) {
    REQUIRE(values.size() == static_cast<std::size_t>(range.numel));
    for (std::int64_t i = 0; i < range.numel; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<float>((range.offset + i) % kPeriod);
    }
  });
  std::int64_t seen = 0;
  std::int64_t wrong = 0;
  engine.save_parameters([&](const ParameterSpec&, const Tensor& values) {
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const float value = values.dtype() == DType::f32 ? values.as<float>()[i]
                                                       : static_cast<float>(values.as<bf16>()[i]);
      if (value != static_cast<float>(i % kPeriod)) ++wrong;
    }
    seen += values.numel();
  });
  CHECK(wrong == 0);
  CHECK(seen == engine.layout().parameter_count());
}
