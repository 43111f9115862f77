#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <map>
#include <random>

#include "collectives/solo.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/data/training_data.h"
#include "runtime/engine.h"
#include "runtime/engine_options.h"
#include "runtime/placement.h"
#include "runtime/step_batches.h"
#include "tests/dist.h"
#include "tests/runtime/gpu_world.h"

using namespace sherd;
using sherd::test::make_gpu_world;
using sherd::test::make_world;
using sherd::test::mpi_session;

namespace {

constexpr std::int64_t kSteps = 2;

RunConfig run_config(const std::vector<std::string>& changes, int world) {
  LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 36,
                    "intermediate_size": 53, "num_hidden_layers": 2, "num_attention_heads": 3,
                    "max_position_embeddings": 16},
          "data": {"format": "synthetic", "sequence_length": 7}, "steps": 2,
          "train_batch_size": 9, "gradient_clipping": 0.5, "reduction": "exact",
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "eps": 1e-3}}})",
      "test", changes);
  resolve_for_world(config, world);
  return config.run;
}

struct Result {
  std::map<std::string, std::vector<std::uint8_t>> parameters;  ///< on rank 0
  std::vector<double> losses;
  std::int64_t predicted = 0;
  std::int64_t measured = 0;
};

Result train(const RunConfig& run, Communicator& world) {
  Model model = build_model(run.model);
  const TrainingData data(run.data, model.sample, run.seed);
  StepBatches batches(run, data.train(), world.rank(), world.size());
  const EngineOptions options = engine_options(run, model, world.size());
  Engine engine(std::move(model), options, world);
  Result result;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    result.losses.push_back(engine.step(batches.read(step)).loss);
  }
  engine.save_parameters([&](const ParameterSpec& spec, const Tensor& values) {
    const auto* bytes = static_cast<const std::uint8_t*>(values.data());
    result.parameters[spec.name].assign(bytes, bytes + values.size_bytes());
  });
  result.predicted = engine.memory_plan().arena_bytes;
  result.measured = engine.measured_peak_bytes();
  return result;
}

Result train_alone(const std::vector<std::string>& changes) {
  SoloCommunicator solo;
  return train(run_config(changes, 1), solo);
}

struct Placed {
  RunConfig run;
  std::vector<std::int64_t> memory;
};

/// What the first rank takes when all is even and every micro-batch is a sample.
std::int64_t even_peak(std::vector<std::string> changes, int world) {
  changes.emplace_back("placement.shards=even");
  changes.emplace_back("placement.batch=even");
  changes.emplace_back("device=cpu");
  const RunConfig run = run_config(changes, world);
  const Model model = build_model(run.model);
  const EngineOptions options = engine_options(run, model, world);
  const ShardLayout layout(model.units, layout_options(options, world));
  const PlanInput input = plan_input(model, layout, options.largest_micro_batch, options.plan);
  return plan_memory(make_plan(input, options.plan), layout, 0).arena_bytes;
}

/// Budgets that a cut must follow: the first rank of a group has less than an even cut takes, as
/// long as others make up for it, and the others much more or hardly more. `beside`: what each rank
/// may take on top of what a CPU does.
Placed placed(const std::vector<std::string>& changes, std::uint64_t seed,
              std::int64_t beside = 0) {
  std::mt19937_64 random(seed);
  const auto percent = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<std::int64_t>(from + random() % (to - from));
  };
  const int world = mpi_session().size();
  Placed placed{run_config(changes, world), {}};
  const std::int64_t even = even_peak(changes, world);
  for (int rank = 0; rank < world; ++rank) {
    const bool less = world > 1 && rank == 0;
    const std::int64_t share = less ? percent(88, 98) : percent(115, 220);
    placed.memory.push_back(even * share / 100 + beside);
  }
  place_run(placed.run, build_model(placed.run.model), world, placed.memory);
  return placed;
}

/// Micro-batches of one sample are the same however they are dealt.
std::vector<std::string> one_sample_changes(const std::string& shards, const std::string& stage,
                                            std::uint64_t seed) {
  const int ranks = mpi_session().size();
  const int group = ranks == 4 && seed % 2 == 0 ? 2 : ranks;
  return {"train_micro_batch_size_per_gpu=1", "placement.shards=" + shards,
          "zero_optimization.stage=" + stage,
          "zero_optimization.shard_group_size=" + std::to_string(group),
          seed % 3 == 1 ? "placement.batch=memory" : "steps=2"};
}

}  // namespace

TEST_CASE("Placements by memory change no bit, and take what was planned", "[dist]") {
  const std::string shards = GENERATE("memory", "fill");
  const std::string stage = GENERATE("1", "2", "3");
  const std::uint64_t seed = GENERATE(1u, 2u, 3u, 4u);
  const std::vector<std::string> changes = one_sample_changes(shards, stage, seed);
  const Placed given = placed(changes, seed);
  CAPTURE(changes, seed, given.memory, mpi_session().size());
  const auto world = make_world();
  const Result together = train(given.run, *world);
  CHECK(together.measured == together.predicted);
  CHECK(together.measured <= given.memory[static_cast<std::size_t>(world->rank())]);
  const Result alone = train_alone({"train_micro_batch_size_per_gpu=1"});
  CHECK(together.losses == alone.losses);
  if (mpi_session().rank() == 0) CHECK(together.parameters == alone.parameters);
}

TEST_CASE("Ranks with micro-batches of their own size give the same mean", "[dist]") {
  const int ranks = mpi_session().size();
  RunConfig run = run_config(
      {"placement.shards=memory", "placement.batch=memory", "zero_optimization.stage=3"}, ranks);
  std::vector<std::int64_t> memory;
  memory.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) memory.push_back(1'500'000 + 700'000 * rank);
  place_run(run, build_model(run.model), ranks, memory);
  const MicroBatchCut cut = micro_batches_of(run, ranks);
  if (ranks > 1) CHECK(cut.largest_of_rank(0) < cut.largest_of_rank(ranks - 1));
  const auto world = make_world();
  const Result together = train(run, *world);
  CHECK(together.measured == together.predicted);
  const Result alone = train_alone({});
  for (std::size_t step = 0; step < alone.losses.size(); ++step) {
    CHECK(std::abs(together.losses[step] - alone.losses[step]) < 1e-5 * alone.losses[step]);
  }
}

TEST_CASE("Placements by memory change no bit on GPUs, and take what was planned",
          "[gpu][dist][groups]") {
  const std::vector<std::string> plain = {"train_micro_batch_size_per_gpu=1", "device=cuda"};
  const auto control = make_world();
  make_gpu_world(*control);  // what ranks that share a GPU need is settled at NCCL's first start
  SoloCommunicator solo;
  const Result alone = train(run_config(plain, 1), *make_gpu_world(solo));
  const std::int64_t beside = alone.predicted - train_alone({plain.front()}).predicted;
  for (const std::string shards : {"memory", "fill"}) {
    for (const std::uint64_t seed : {1, 2}) {
      std::vector<std::string> changes = one_sample_changes(shards, "3", seed);
      changes.emplace_back("device=cuda");
      const Placed given = placed(changes, seed, beside);
      CAPTURE(changes, seed, given.memory, mpi_session().size());
      const auto gpus = make_gpu_world(*control);  // a peak is that of a communicator's memory
      const Result together = train(given.run, *gpus);
      CHECK(together.measured == together.predicted);
      CHECK(together.losses == alone.losses);
      if (mpi_session().rank() == 0) CHECK(together.parameters == alone.parameters);
    }
  }
}
