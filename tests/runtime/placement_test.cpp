#include "runtime/placement.h"

#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <random>

#include "core/error.h"
#include "models/build.h"
#include "runtime/config/batch.h"
#include "runtime/config/load.h"
#include "runtime/engine_options.h"
#include "runtime/plan.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

RunConfig run_config(int world, const std::vector<std::string>& changes = {}) {
  LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 36,
                    "intermediate_size": 53, "num_hidden_layers": 3, "num_attention_heads": 3,
                    "max_position_embeddings": 16},
          "data": {"format": "synthetic", "sequence_length": 16}, "steps": 1,
          "train_batch_size": 24, "zero_optimization": {"stage": 3}})",
      "test", changes);
  resolve_for_world(config, world);
  return config.run;
}

/// What the engine of each rank will take; every plan is verified.
std::vector<std::int64_t> peaks(const RunConfig& run, int world) {
  const Model model = build_model(run.model);
  EngineOptions options = engine_options(run, model, world);
  const ShardLayout layout(model.units, layout_options(options, world));
  std::vector<std::int64_t> bytes;
  for (int rank = 0; rank < world; ++rank) {
    const PlanInput input =
        plan_input(model, layout, micro_batch_of_rank(options, rank, world), options.plan);
    bytes.push_back(0);
    for (const bool evaluate : {false, true}) {
      options.plan.evaluate = evaluate;
      const Plan plan = make_plan(input, options.plan);
      const MemoryPlan memory = plan_memory(plan, layout, rank % layout.group_size());
      verify(plan, memory);
      bytes.back() = std::max(bytes.back(), memory.arena_bytes);
    }
    options.plan.evaluate = false;
  }
  return bytes;
}

RunConfig placed(RunConfig run, int world, const std::vector<std::int64_t>& memory) {
  place_run(run, build_model(run.model), world, memory);
  return run;
}

std::int64_t held(const RunConfig& run, std::size_t rank) {
  std::int64_t sum = 0;
  for (const auto& counts : run.placement.shard_counts) sum += counts[rank];
  return sum;
}

std::vector<std::string> operator+(std::vector<std::string> changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

namespace {

/// A run and what its ranks may take, drawn at random.
struct RandomCase {
  int world = 1;
  std::vector<std::string> changes;
  std::vector<std::int64_t> memory;

  explicit RandomCase(std::mt19937_64& random);

  /// The run with shards cut so; where they are not even, for the memories.
  RunConfig run(const std::string& shards) const {
    RunConfig config = run_config(world, changes + ("placement.shards=" + shards));
    if (config.placement.batch == PlaceBy::weights) config.batch.micro = 1;
    return placed(config, world, memory);
  }

  std::vector<std::int64_t> taken(const std::string& shards) const {
    return peaks(run(shards), world);
  }

  /// How much the rank that lacks most lacks; at most 0 when the run fits.
  std::int64_t lack(const std::string& shards) const {
    const std::vector<std::int64_t> bytes = taken(shards);
    std::int64_t most = INT64_MIN;
    for (std::size_t r = 0; r < bytes.size(); ++r) most = std::max(most, bytes[r] - memory[r]);
    return most;
  }
};

RandomCase::RandomCase(std::mt19937_64& random) {
  const auto pick = [&](auto... values) {
    const std::vector<std::string> all = {values...};
    return all[random() % all.size()];
  };
  world = 1 + static_cast<int>(random() % 6);
  std::vector<std::string> groups = {"0"};
  for (int group = 2; group < world; ++group) {
    if (world % group == 0) groups.push_back(std::to_string(group));
  }
  changes = {"zero_optimization.stage=" + pick("1", "2", "3"), "reduction=" + pick("fast", "exact"),
             "bf16.enabled=" + pick("true", "false"),
             "zero_optimization.shard_group_size=" + groups[random() % groups.size()],
             "activation_checkpointing.enabled=" + pick("true", "false")};
  RunConfig even = run_config(world, changes);
  even.batch.micro = 1;
  changes.push_back("placement.batch=" + pick("even", "memory"));
  for (const std::int64_t bytes : peaks(even, world)) {
    memory.push_back(bytes * static_cast<std::int64_t>(50 + random() % 200) / 100);
  }
}

}  // namespace

TEST_CASE("placements of random runs and memories take no more than there is") {
  const auto seed = GENERATE(1u, 2u, 3u, 4u, Catch::getSeed());
  std::mt19937_64 random(seed);
  int fitting = 0;
  int only_by_memory = 0;
  for (int i = 0; i < 24; ++i) {
    const RandomCase one(random);
    CAPTURE(seed, i, one.world, one.changes, one.memory);
    const RunConfig run = one.run("memory");
    CHECK(micro_batches_of(run, one.world).train == 24);
    const std::int64_t even = one.lack("even");
    const std::int64_t memory = one.lack("memory");
    const std::int64_t fill = one.lack("fill");
    CAPTURE(even, memory, fill);
    // What fits somehow fits by memory, and what fits by memory fits when filled too.
    if (even <= 0) CHECK(memory <= 0);
    if (memory <= 0) CHECK(fill <= 0);
    fitting += memory <= 0 ? 1 : 0;
    only_by_memory += memory <= 0 && even > 0 ? 1 : 0;
  }
  if (seed == Catch::getSeed()) return;  // a rare one may have none
  CHECK(fitting > 2);
  CHECK(only_by_memory > 0);
}

TEST_CASE("shards by memory leave every rank room, where an even cut does not fit") {
  const std::string small = "train_micro_batch_size_per_gpu=1";
  const std::int64_t needed = peaks(run_config(4, {small}), 4).front();
  const std::vector<std::int64_t> memory = {needed * 9 / 10, needed * 2, needed, needed};
  const RunConfig run = placed(run_config(4, {small, "placement.shards=memory"}), 4, memory);
  const std::vector<std::int64_t> taken = peaks(run, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(taken[rank] < memory[rank]);
  CHECK(held(run, 1) > held(run, 2));
  CHECK(held(run, 0) < held(run, 2));
}

TEST_CASE("filling leaves ranks empty that are not needed, and stops at what a rank may take") {
  const std::int64_t needed = peaks(run_config(4), 4).front();
  const std::vector<std::int64_t> memory = {needed, 2 * needed, needed, needed};
  const RunConfig run = placed(run_config(4, {"placement.shards=fill"}), 4, memory);
  const std::vector<std::int64_t> taken = peaks(run, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(taken[rank] <= memory[rank]);
  constexpr std::int64_t kGranule = std::int64_t{64} * 16 * 2;
  CHECK(taken[0] > memory[0] - kGranule);
  CHECK(held(run, 3) == 0);
}

TEST_CASE("the position of a rank in its group is sized by the least memory of all groups") {
  const std::int64_t needed = peaks(run_config(4, {"zero_optimization.shard_group_size=2"}), 4)[0];
  const std::vector<std::int64_t> memory = {2 * needed, 2 * needed, needed * 3 / 4, 2 * needed};
  const RunConfig run =
      placed(run_config(4, {"zero_optimization.shard_group_size=2", "placement.shards=memory"}), 4,
             memory);
  CHECK(held(run, 0) < held(run, 1));
  const std::vector<std::int64_t> taken = peaks(run, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(taken[rank] <= memory[rank]);
}

TEST_CASE(
    "a batch by memory has as few rounds as fit, and larger micro-batches where there is room") {
  const RunConfig one = [] {
    RunConfig run = run_config(3);
    run.batch.micro = 1;
    return run;
  }();
  const std::int64_t least = peaks(one, 3).front();
  const std::vector<std::int64_t> memory = {least + 40'000, least + 400'000, least + 150'000};
  const RunConfig run = placed(run_config(3, {"placement.batch=memory"}), 3, memory);
  const std::vector<std::int64_t> taken = peaks(run, 3);
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(taken[rank] <= memory[rank]);
  const MicroBatchCut cut = micro_batches_of(run, 3);
  CHECK(cut.train == 24);
  CHECK(cut.largest_of_rank(1) > cut.largest_of_rank(0));
  CHECK(cut.samples_of_rank(1) > cut.samples_of_rank(2));
  RunConfig fewer = run;
  fewer.placement.rounds -= 1;
  REQUIRE(fewer.placement.rounds > 0);
  const std::vector<std::int64_t> with_fewer = peaks(fewer, 3);
  CHECK((with_fewer[0] > memory[0] || with_fewer[1] > memory[1] || with_fewer[2] > memory[2]));
}

TEST_CASE("the batch keys limit what memory allows") {
  const std::vector<std::int64_t> memory(2, std::int64_t{1} << 40);
  const auto limited = [&](const std::string& change) {
    return placed(run_config(2, {"placement.batch=memory", change}), 2, memory).placement;
  };
  CHECK(limited("steps=1").rounds == 1);
  CHECK(limited("train_micro_batch_size_per_gpu=5").rounds == 3);
  CHECK(limited("gradient_accumulation_steps=4").rounds == 4);
}

TEST_CASE("what goes by memory needs to know it, and something to cut") {
  const RunConfig run = run_config(2, {"placement.shards=fill"});
  const Model model = build_model(run.model);
  CHECK_THROWS_WITH(engine_options(run, model, 2), ContainsSubstring("--device-memory"));
  const std::vector<std::int64_t> memory(2, 1 << 30);
  CHECK_THROWS_WITH(
      placed(run_config(2, {"placement.shards=fill", "zero_optimization.stage=0"}), 2, memory),
      ContainsSubstring("nothing is cut into shards"));
  CHECK_NOTHROW(placed(run_config(1, {"placement.shards=fill"}), 1, {1 << 30}));
  CHECK(memory_per_rank(std::vector<std::int64_t>{7}, 3) == std::vector<std::int64_t>{7, 7, 7});
  CHECK_THROWS_AS(memory_per_rank(memory, 3), ArgumentError);
}

TEST_CASE("samples go by speed, in micro-batches that fit each rank's memory") {
  const std::vector<std::string> changes = {"placement.batch=\"speed\"",
                                            "placement.speed=[3, 1, 2, 2]"};
  const std::vector<std::int64_t> roomy(4, std::int64_t{1} << 30);
  const RunConfig wide = placed(run_config(4, changes), 4, roomy);
  CHECK(wide.placement.rank_samples == std::vector<std::int64_t>{9, 3, 6, 6});
  CHECK(wide.placement.rounds == 1);
  RunConfig smallest = run_config(4);
  smallest.batch.micro = 1;
  const std::int64_t one_sample = peaks(smallest, 4).front();
  const std::vector<std::int64_t> tight(4, one_sample * 5 / 4);
  const RunConfig narrow = placed(run_config(4, changes), 4, tight);
  CHECK(narrow.placement.rank_samples == wide.placement.rank_samples);
  CHECK(narrow.placement.rounds > 1);
  for (const std::int64_t taken : peaks(narrow, 4)) CHECK(taken <= tight.front());
}

TEST_CASE("a batch by speed needs speeds, one per rank") {
  CHECK_THROWS_WITH(run_config(4, {"placement.batch=\"speed\""}),
                    ContainsSubstring("give placement.speed"));
  CHECK_THROWS_WITH(run_config(4, {"placement.batch=\"speed\"", "placement.speed=[1, 2]"}),
                    ContainsSubstring("has 2 weights for 4 ranks"));
  CHECK_THROWS_WITH(run_config(2, {"placement.batch=\"speed\"", "placement.speed=[0, 0]"}),
                    ContainsSubstring("at least one weight"));
}

TEST_CASE("texts with a label each are dealt by memory too") {
  const std::vector<std::int64_t> memory = {std::int64_t{1} << 20, std::int64_t{3} << 20,
                                            std::int64_t{2} << 20};
  const RunConfig run =
      placed(run_config(3, {R"(model={"model_type": "bert", "vocab_size": 258, "hidden_size": 36,
                     "intermediate_size": 53, "num_hidden_layers": 3, "num_attention_heads": 3,
                     "num_labels": 2})",
                            R"(data={"sequence_length": 16})", "placement.batch=memory",
                            "placement.shards=fill"}),
             3, memory);
  CHECK(sum_of(run.placement.rank_samples) == 24);
  CHECK(run.placement.rank_samples[1] > run.placement.rank_samples[0]);
  const std::vector<std::int64_t> taken = peaks(run, 3);
  for (std::size_t rank = 0; rank < taken.size(); ++rank) CHECK(taken[rank] <= memory[rank]);
}
