#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "collectives/nccl.h"
#include "collectives/solo.h"
#include "core/cuda_backend.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/training.h"

// On one GPU a rank: mpirun -np 2 runtime_dist_tests "[gpu]".

using namespace sherd;
using namespace sherd::testing;
using sherd::test::make_world;
using sherd::test::mpi_session;

namespace {

Device own_gpu() { return {DeviceKind::cuda, mpi_session().local_rank()}; }

Trained train_on_gpus(const TrainingCase& training) {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "test");
  return train(training, *world);
}

Trained train_on_own_gpu(const TrainingCase& training) {
  SoloCommunicator alone;
  const auto world = make_nccl_communicator(alone, own_gpu(), "alone");
  return train(training, *world);
}

void check_same_bits(const Trained& trained, const Trained& reference) {
  if (mpi_session().rank() == 0) CHECK(trained.parameters == reference.parameters);
  REQUIRE(trained.steps.size() == reference.steps.size());
  for (std::size_t s = 0; s < trained.steps.size(); ++s) {
    CHECK(trained.steps[s].applied);
    CHECK(trained.steps[s].loss == reference.steps[s].loss);
    CHECK(trained.steps[s].gradient_norm == reference.steps[s].gradient_norm);
  }
  CHECK(trained.evaluation == reference.evaluation);
}

}  // namespace

TEST_CASE("GPUs and CPUs agree over twenty steps of the same f32 run", "[gpu][dist]") {
  const std::string model = GENERATE("mlp", "gpt2", "qwen2");
  TrainingCase training = training_case(model);
  training.options.plan.stage = GENERATE(0, 3);
  training.steps = 20;
  CAPTURE(model, training.options.plan.stage);
  const Trained on_gpus = train_on_gpus(training);
  const Trained on_cpu = train_alone(training);
  for (std::size_t s = 0; s < on_cpu.steps.size(); ++s) {
    CHECK(on_gpus.steps[s].applied);
    CHECK(std::abs(on_gpus.steps[s].loss - on_cpu.steps[s].loss) < 1e-4 * on_cpu.steps[s].loss);
  }
  if (mpi_session().rank() == 0) CHECK(distance(on_gpus, on_cpu) < 1e-3);
}

TEST_CASE("Exact mode on GPUs gives one GPU's bits at every stage", "[gpu][dist]") {
  TrainingCase training = training_case(GENERATE("llama", "gpt2"));
  training.options.plan.exact = true;
  training.options.plan.compute = GENERATE(DType::f32, DType::bf16);
  training.options.plan.stage = GENERATE(1, 3);
  TrainingCase alone = training;
  alone.options.plan.stage = 0;
  check_same_bits(train_on_gpus(training), train_on_own_gpu(alone));
}

TEST_CASE("Unequal shards, prefetch, bursts and recompute change no bit on GPUs", "[gpu][dist]") {
  TrainingCase training = training_case("llama");
  training.options.plan.exact = true;
  const Trained reference = train_on_own_gpu(training);
  training.options.plan.stage = 3;
  SECTION("prefetch") { training.options.plan.prefetch = GENERATE(0, 2, 3); }
  SECTION("bursts") {
    training.options.plan.gather_burst = 2;
    training.options.plan.reduce_burst = 2;
  }
  SECTION("recompute") {
    training.options.plan.recompute.assign(build_model(training.model).units.size(), true);
  }
  SECTION("unequal shards") {
    for (int r = 0; r < mpi_session().size(); ++r) {
      training.options.shard_weights.push_back(1.0 + 2.0 * r);
    }
  }
  check_same_bits(train_on_gpus(training), reference);
}

TEST_CASE("Half precision trains on GPUs, within its rounding of single", "[gpu][dist]") {
  TrainingCase training = training_case(GENERATE("llama", "gpt2"));
  training.options.plan.stage = 3;
  training.options.plan.compute = GENERATE(DType::bf16, DType::f16);
  training.options.plan.wire = training.options.plan.compute;
  training.options.loss_scale.initial_scale_power = 8;
  const Trained half = train_on_gpus(training);
  training.options.plan.compute = training.options.plan.wire = DType::f32;
  const Trained single = train_alone(training);
  for (std::size_t s = 0; s < half.steps.size(); ++s) {
    CHECK(half.steps[s].applied);
    CHECK(std::abs(half.steps[s].loss - single.steps[s].loss) < 0.03 * single.steps[s].loss);
  }
}

TEST_CASE("The predicted peak is what a GPU is asked for", "[gpu][dist]") {
  TrainingCase training = training_case("llama");
  training.options.plan.stage = GENERATE(0, 1, 2, 3);
  const Trained trained = train_on_gpus(training);
  CHECK(trained.measured_peak_bytes == trained.predicted_peak_bytes);
}
