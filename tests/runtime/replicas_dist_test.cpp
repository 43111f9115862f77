#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/label.h"
#include "models/build.h"
#include "runtime/engine.h"
#include "tests/dist.h"
#include "tests/models/tiny_models.h"
#include "tests/runtime/gpu_world.h"
#include "tests/runtime/training.h"

using namespace sherd;
using namespace sherd::testing;
using Catch::Matchers::ContainsSubstring;
using sherd::test::make_gpu_world;
using sherd::test::make_world;

namespace {

constexpr std::int64_t kSamples = 12;
constexpr std::int64_t kSequence = 7;

std::unique_ptr<Engine> make_engine(int stage, int group, DType compute, Communicator& world) {
  TrainingCase training = training_case("llama");
  training.options.plan.stage = stage;
  training.options.plan.group_size = group;
  training.options.plan.compute = training.options.plan.wire = compute;
  training.options.plan.rounds = static_cast<int>((kSamples + world.size() - 1) / world.size());
  training.options.largest_micro_batch = {1, kSequence};
  training.options.labels_per_step = kSamples * kSequence;
  return std::make_unique<Engine>(build_model(training.model), training.options, world);
}

/// Every label of the batch must count: each replica trains on samples of its own.
void train_a_step(Engine& engine, const Communicator& world) {
  const HostBatch batch = random_batch(tiny_model("llama"), kSamples, kSequence, 1);
  const StepResult result = step_over(engine, batch, world);
  CHECK(result.applied);
  CHECK(result.labels == std::count_if(batch.labels.begin(), batch.labels.end(),
                                       [](std::int32_t l) { return l != kIgnoredLabel; }));
}

/// Two groups, where so many ranks have two.
int half_of(const Communicator& world) { return world.size() % 2 == 0 ? world.size() / 2 : 1; }

void check_equal_replicas(int stage, DType compute, Communicator& world) {
  const auto engine = make_engine(stage, half_of(world), compute, world);
  CHECK_NOTHROW(engine->check_replicas());
  train_a_step(*engine, world);
  CHECK_NOTHROW(engine->check_replicas());
}

/// The last rank loads other values, into what it holds: all of them or its shard.
void check_different_replica(int stage, int group, Communicator& world) {
  const int culprit = world.size() - 1;
  const auto engine = make_engine(stage, group, DType::f32, world);
  const float shift = world.rank() == culprit ? 0x1p-20f : 0.0f;
  engine->load_parameters([&](const ParameterSpec&, Shard, std::span<float> values) {
    for (float& value : values) value = 1.0f + shift;
  });
  const int other = stage == 0 ? 0 : culprit % group;
  CHECK_THROWS_WITH(engine->check_replicas(),
                    ContainsSubstring(fmt::format("ranks {} and {} are replicas", other, culprit)));
}

}  // namespace

TEST_CASE("Replicas that trained on data of their own hold the same parameters", "[dist]") {
  const int stage = GENERATE(0, 1, 3);
  check_equal_replicas(stage, GENERATE(DType::f32, DType::bf16), *make_world());
}

TEST_CASE("A replica with other parameters is named on all ranks", "[dist]") {
  const auto world = make_world();
  if (world->size() == 1) return;  // there is no other
  check_different_replica(0, 0, *world);
  if (half_of(*world) == 1) return;  // groups of one have nothing to shard
  for (const int stage : {1, 3}) check_different_replica(stage, half_of(*world), *world);
}

TEST_CASE("Replicas on GPUs hold the same parameters, and one that doesn't is named",
          "[gpu][dist][groups]") {
  const auto control = make_world();
  const auto gpus = make_gpu_world(*control);
  check_equal_replicas(3, DType::bf16, *gpus);
  if (gpus->size() == 1) return;
  check_different_replica(0, 0, *gpus);
  if (half_of(*gpus) > 1) check_different_replica(3, half_of(*gpus), *gpus);
}
