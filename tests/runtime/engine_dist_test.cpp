#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "kernels/elementwise.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/training.h"

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_world;
using sherd::test::mpi_session;

namespace {

Trained train_together(const TrainingCase& training) {
  const auto world = make_world();
  return train(training, *world);
}

/// What one rank alone computes, on every rank that looks.
Trained reference_of(TrainingCase training) {
  training.options.plan.stage = 0;
  training.options.plan.group_size = 0;
  training.options.plan.recompute.clear();
  training.options.shard_weights.clear();
  training.options.delays = {};
  training.batch_weights.clear();
  return train_alone(training);
}

void check_same_bits(const Trained& trained, const Trained& reference) {
  if (mpi_session().rank() == 0) CHECK(trained.parameters == reference.parameters);
  REQUIRE(trained.steps.size() == reference.steps.size());
  for (std::size_t s = 0; s < trained.steps.size(); ++s) {
    CHECK(trained.steps[s].loss == reference.steps[s].loss);
    CHECK(trained.steps[s].gradient_norm == reference.steps[s].gradient_norm);
  }
  CHECK(trained.evaluation == reference.evaluation);
  CHECK(trained.correct == reference.correct);
}

TrainingCase exact_case(const std::string& model) {
  TrainingCase training = training_case(model);
  training.options.plan.exact = true;
  return training;
}

}  // namespace

TEST_CASE("Exact mode gives one rank's bits at every stage, for every model", "[dist]") {
  const std::string model = GENERATE(from_range(tiny_model_names()));
  TrainingCase training = exact_case(model);
  training.options.plan.stage = GENERATE(0, 1, 2, 3);
  CAPTURE(model, training.options.plan.stage, mpi_session().size());
  check_same_bits(train_together(training), reference_of(training));
}

TEST_CASE("Exact mode gives one rank's bits in half precision", "[dist]") {
  TrainingCase training = exact_case(GENERATE("llama", "gpt2", "bert"));
  training.options.plan.stage = GENERATE(1, 3);
  training.options.plan.compute = GENERATE(DType::bf16, DType::f16);
  training.options.loss_scale.initial_scale_power = 8;
  check_same_bits(train_together(training), reference_of(training));
}

TEST_CASE("Options that must change nothing change no bit", "[dist]") {
  TrainingCase training = exact_case("llama");
  const Trained reference = reference_of(training);
  PlanOptions& plan = training.options.plan;
  plan.stage = 3;
  SECTION("prefetch depth") { plan.prefetch = GENERATE(0, 1, 2, 3, 9); }
  SECTION("bursts and depths") {
    plan.gather_burst = GENERATE(1, 2, 3);
    plan.reduce_burst = GENERATE(1, 3);
    plan.reduce_depth = GENERATE(1, 2, 4);
  }
  SECTION("keeping parameters after the forward pass") { plan.reshard_after_forward = false; }
  SECTION("recompute") { plan.recompute.assign(build_model(training.model).units.size(), true); }
  SECTION("pauses on every stream") {
    plan.prefetch = GENERATE(0, 2);
    training.options.delays = {300, GENERATE(1u, 2u, 3u)};
  }
  SECTION("the granularity of shards") {
    training.options.shard_granularity = GENERATE(1, 7, 64, 100000);
  }
  check_same_bits(train_together(training), reference);
}

TEST_CASE("The deal of micro-batches to ranks changes no bit", "[dist]") {
  TrainingCase training = exact_case(GENERATE("qwen3", "bert"));
  training.options.plan.stage = 3;
  SECTION("as even as they go") { training.samples = GENERATE(1, 2, 5, 13); }
  SECTION("larger micro-batches") {
    training.micro = 4;
    training.samples = 11;
  }
  SECTION("by weights, some ranks without any") {
    for (int r = 0; r < mpi_session().size(); ++r) training.batch_weights.push_back(r % 3);
    training.batch_weights[0] = 1.5;
  }
  check_same_bits(train_together(training), reference_of(training));
}

TEST_CASE("Unequal shards change no bit, and a rank may hold nothing", "[dist]") {
  TrainingCase training = exact_case(GENERATE("gpt2", "bert"));
  training.options.plan.stage = GENERATE(1, 2, 3);
  for (int r = 0; r < mpi_session().size(); ++r) {
    training.options.shard_weights.push_back((r * 2 + 1) % 4);
  }
  training.options.shard_granularity = GENERATE(1, 64);
  const Trained trained = train_together(training);
  check_same_bits(trained, reference_of(training));
  CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
}

TEST_CASE("Shard groups with replicas change no bit", "[dist]") {
  const int ranks = mpi_session().size();
  const int group = GENERATE(1, 2, 3);
  if (ranks % group != 0) return;
  TrainingCase training = exact_case(GENERATE("llama", "mlp"));
  training.options.plan.group_size = group;
  training.options.plan.stage = GENERATE(0, 1, 2, 3);
  check_same_bits(train_together(training), reference_of(training));
}

TEST_CASE("Fast mode stays within its bound of exact mode", "[dist]") {
  TrainingCase training = exact_case(GENERATE(from_range(tiny_model_names())));
  const Trained reference = reference_of(training);
  training.options.plan.exact = false;
  training.options.plan.stage = GENERATE(0, 1, 2, 3);
  const Trained trained = train_together(training);
  if (mpi_session().rank() == 0) CHECK(distance(trained, reference) < 1e-5);
  for (std::size_t s = 0; s < trained.steps.size(); ++s) {
    CHECK(std::abs(trained.steps[s].loss - reference.steps[s].loss) <
          1e-5 * reference.steps[s].loss);
  }
}

TEST_CASE("Fast mode does not depend on pauses, prefetch or bursts either", "[dist]") {
  TrainingCase training = training_case("llama");
  training.options.plan.stage = GENERATE(2, 3);
  const Trained plain = train_together(training);
  training.options.delays = {300, 4};
  training.options.plan.prefetch = 3;
  training.options.plan.reduce_burst = 2;
  const Trained other = train_together(training);
  if (mpi_session().rank() == 0) CHECK(other.parameters == plain.parameters);
}

TEST_CASE("The predicted peak is the measured peak on every rank", "[dist]") {
  TrainingCase training = training_case(GENERATE("llama", "mlp", "bert"));
  training.options.plan.stage = GENERATE(0, 1, 2, 3);
  training.options.plan.exact = GENERATE(false, true);
  const Trained trained = train_together(training);
  CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
}
