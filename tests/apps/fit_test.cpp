#include "apps/fit.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "apps/plan_advice.h"
#include "apps/quantity.h"
#include "apps/rates.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/placement.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kText = R"({
  "model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 72, "intermediate_size": 96,
            "num_hidden_layers": 6, "num_attention_heads": 3, "max_position_embeddings": 16},
  "data": {"format": "synthetic", "sequence_length": 16}, "steps": 10, "train_batch_size": 16})";

RunConfig resolved(const std::vector<std::string>& changes = {}) {
  LoadedConfig config = parse_run_config(kText, "test", changes);
  resolve_for_world(config, 4);
  return config.run;
}

/// Of stage 3, one sample at a time.
std::int64_t least_peak(std::vector<std::string> changes) {
  changes.insert(changes.end(), {"zero_optimization.stage=3", "train_micro_batch_size_per_gpu=1",
                                 "zero_optimization.prefetch_units=0"});
  return plan_run(resolved(changes), 4).peak_bytes();
}

std::ptrdiff_t units_run_again(const Fit& fit) {
  const std::vector<bool>& again = fit.plan.options.recompute;
  return std::count(again.begin(), again.end(), true);
}

FitSearch search(const std::vector<std::int64_t>& memory) {
  const std::vector<Rates> rates = rates_for(usual_rates(DeviceChoice::cuda), DType::f32, 4);
  return find_fits(resolved(), DeviceMemory(memory, 4), rates);
}

}  // namespace

TEST_CASE("what is found fits, is sorted, and its changes make the very same plan") {
  const std::vector<std::int64_t> sizes = {2'500'000, 1'500'000, 2'500'000, 1'400'000};
  const DeviceMemory memory(sizes, 4);
  const FitSearch found = search(sizes);
  REQUIRE(!found.best.empty());
  CHECK(found.tried > 20);
  for (const Fit& fit : found.best) {
    CAPTURE(fit.description);
    CHECK(fit.headroom_bytes >= 0);
    CHECK(fit.tokens_per_s <= 1.01 * found.best.front().tokens_per_s);
    RunConfig run = resolved(fit.changes);
    place_run(run, build_model(run.model), 4, memory.per_rank());
    const RunPlan again = plan_run(run, 4);
    CHECK(memory.holds(again));
    CHECK(again.hash == fit.plan.hash);
    CHECK(again.peak_bytes() == fit.plan.peak_bytes());
  }
}

TEST_CASE("with less memory the search shards more and runs again, and is never faster") {
  const std::int64_t all = std::int64_t{1} << 30;
  const FitSearch wide = search({all});
  const FitSearch narrow = search({1'750'000});
  REQUIRE(!wide.best.empty());
  REQUIRE(!narrow.best.empty());
  CHECK(narrow.best.front().tokens_per_s <= wide.best.front().tokens_per_s);
  CHECK(narrow.best.front().plan.options.stage >= 1);
  CHECK(units_run_again(wide.best.front()) == 0);
  // Micro-batches of a sample each, all sharded: what is saved is all that is left to give.
  const std::int64_t without = least_peak({});
  REQUIRE(least_peak({"activation_checkpointing.enabled=true"}) < without);
  const FitSearch tight = search({without - 1});
  REQUIRE(!tight.best.empty());
  for (const Fit& fit : tight.best) CHECK(units_run_again(fit) > 0);
  const auto units = static_cast<std::ptrdiff_t>(build_model(resolved().model).units.size());
  CHECK(units_run_again(tight.best.front()) < units - 1);  // and no more than must
  CHECK(tight.best.front().tokens_per_s >= narrow.best.front().tokens_per_s);
  const FitSearch late = search({without});  // gathers late, but runs nothing again
  REQUIRE(!late.best.empty());
  CHECK(std::any_of(late.best.begin(), late.best.end(),
                    [](const Fit& fit) { return units_run_again(fit) == 0; }));
}

TEST_CASE("when nothing fits, the smallest run says how much it lacks") {
  CHECK(search({1000}).best.empty());
  const std::string lacking = why_none_fits(resolved(), DeviceMemory({1000}, 4));
  CHECK_THAT(lacking, ContainsSubstring("stage 3"));
  CHECK_THAT(lacking, ContainsSubstring("in all"));
}

TEST_CASE("the model agrees with what one and two H200 took for a step, and with their arenas") {
  struct Measured {  // benchmarks/results/h200.md
    int ranks;
    double seconds;
    const char* peak;
  };
  const auto measured = GENERATE(Measured{1, 0.317, "49.6 GiB"}, Measured{2, 0.332, "37.8 GiB"});
  const int ranks = measured.ranks;
  LoadedConfig config = load_run_config(SHERD_BENCHMARKS "/llama_1b5.json",
                                        {fmt::format("train_batch_size={}", 4 * ranks)});
  resolve_for_world(config, ranks);
  const std::vector<Rates> rates = rates_for(usual_rates(DeviceChoice::cuda), DType::bf16, ranks);
  const RunPlan plan = plan_run(config.run, ranks, {nullptr, rates});
  INFO(plan.time.seconds);
  CHECK(std::abs(plan.time.seconds - measured.seconds) < 0.15 * measured.seconds);
  CHECK(bytes_text(plan.peak_bytes()) == measured.peak);
}

TEST_CASE("memory may differ, and then shards and batch go by it") {
  const std::vector<std::int64_t> sizes = {900'000, 6'000'000, 3'000'000, 900'000};
  CHECK(least_peak({"activation_checkpointing.enabled=true"}) > sizes.front());  // even has no room
  const FitSearch found = search(sizes);
  REQUIRE(!found.best.empty());
  for (const Fit& fit : found.best) {
    CAPTURE(fit.description);
    CHECK(fit.headroom_bytes >= 0);
    const std::vector<double>& held = fit.plan.held;
    REQUIRE(held.size() == 4);
    CHECK(held[1] > 0.25);
    CHECK(held[0] < 0.25);
    CHECK(held[3] < 0.25);
    CHECK_THAT(fmt::format("{}", fmt::join(fit.changes, " ")),
               ContainsSubstring("placement.shards=\"memory\"") ||
                   ContainsSubstring("placement.shards=\"fill\""));
  }
  const auto by_memory = std::find_if(found.best.begin(), found.best.end(), [](const Fit& fit) {
    return fit.description.find("less by memory") != std::string::npos;
  });
  REQUIRE(by_memory != found.best.end());
  const MicroBatchCut& batch = by_memory->plan.batch;
  CHECK(batch.samples_of_rank(1) > batch.samples_of_rank(2));
  CHECK(batch.samples_of_rank(2) > batch.samples_of_rank(0));
}

TEST_CASE("ranks are filled in order where that is as good, or all that fits") {
  const std::vector<std::int64_t> sizes = {6'000'000, 900'000, 900'000, 900'000};
  const FitSearch found = search(sizes);
  REQUIRE(!found.best.empty());
  const auto filled = std::find_if(found.best.begin(), found.best.end(), [](const Fit& fit) {
    return fit.description.find("filled in order") != std::string::npos;
  });
  REQUIRE(filled != found.best.end());
  CHECK(filled->plan.held[0] > 0.9);
}

TEST_CASE("units that are gathered or reduced together are searched too") {
  // Collectives that take as long whatever their size: fewer waits for them are all that counts.
  const std::vector<Rates> rates = {{1e12, 1e12, 1e12, 1e-3, 0.0}};
  const DeviceMemory memory({std::int64_t{1} << 30}, 4);
  const FitSearch found = find_fits(resolved({"zero_optimization.gather_burst=4",
                                              "zero_optimization.reduce_bucket_size=1000000"}),
                                    memory, rates);
  REQUIRE(!found.best.empty());
  for (const Fit& fit : found.best) {
    const std::string changes = fmt::format("{}", fmt::join(fit.changes, " "));
    CHECK_THAT(changes, ContainsSubstring("zero_optimization.gather_burst="));
    CHECK_THAT(changes, ContainsSubstring("zero_optimization.reduce_burst="));
  }
  const std::int64_t late = least_peak({"zero_optimization.prefetch_units=0"});
  const FitSearch tight =
      find_fits(resolved({"zero_optimization.gather_burst=4"}), DeviceMemory({late}, 4), rates);
  CHECK(!tight.best.empty());
}

TEST_CASE("a slow card among fast ones gets less of the batch, and the step is faster for it") {
  const DeviceMemory memory({std::int64_t{1} << 30}, 4);
  const Rates fast{1e12, 1e15, 1e15, 0.0, 0.0};  // bound by products
  Rates slow = fast;
  slow.products /= 5.0;
  const std::vector<Rates> rates = {fast, slow, fast, fast};
  const FitSearch found = find_fits(resolved(), memory, rates);
  REQUIRE(!found.best.empty());
  const Fit& best = found.best.front();
  INFO(best.description);
  CHECK_THAT(best.description, ContainsSubstring("by speed"));
  // 16 samples at speeds 5, 1, 5, 5.
  CHECK(best.plan.batch.rank_samples == std::vector<std::int64_t>{5, 1, 5, 5});
  RunConfig even = resolved({"zero_optimization.stage=0", "train_micro_batch_size_per_gpu=4"});
  const RunPlan slowed = plan_run(even, 4, {nullptr, rates});
  CHECK(best.plan.time.seconds < 0.3 * slowed.time.seconds);  // of 5/20 that products allow

  RunConfig again = resolved(best.changes);
  place_run(again, build_model(again.model), 4, memory.per_rank());
  const RunPlan same = plan_run(again, 4, {nullptr, rates});
  CHECK(same.hash == best.plan.hash);
  CHECK(same.batch.rank_samples == best.plan.batch.rank_samples);
}

TEST_CASE("rates of another number of ranks are refused") {
  DeviceRates rates = usual_rates(DeviceChoice::cpu);
  rates.ranks = {rates, rates};
  CHECK_THROWS_WITH(rates_for(rates, DType::f32, 3), ContainsSubstring("those of 2 ranks"));
}
