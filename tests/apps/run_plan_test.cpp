#include "apps/run_plan.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <numeric>
#include <string>

#include "apps/fit.h"
#include "apps/plan_advice.h"
#include "apps/quantity.h"
#include "collectives/solo.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/engine_options.h"

using namespace sherd;

namespace {

constexpr const char* kLlama70B = R"({
  "model": {"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192,
            "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "max_position_embeddings": 8192},
  "data": {"train": "not-there.bin", "sequence_length": 4096}, "steps": 10,
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
  "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})";

constexpr const char* kSmall = R"({
  "model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 36, "intermediate_size": 53,
            "num_hidden_layers": 3, "num_attention_heads": 3, "max_position_embeddings": 16},
  "data": {"format": "synthetic", "sequence_length": 16}, "steps": 10,
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 4})";

RunConfig resolved(const char* text, int world, const std::vector<std::string>& overrides = {}) {
  LoadedConfig config = parse_run_config(text, "test", overrides);
  resolve_for_world(config, world);
  return config.run;
}

std::int64_t sum_of(const RankNeeds& needs) {
  return std::accumulate(needs.bytes.begin(), needs.bytes.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("a 70B Llama at 64 ranks is planned and verified in under 2 s, and its table adds up") {
  const auto started = std::chrono::steady_clock::now();
  const RunPlan plan = plan_run(resolved(kLlama70B, 64), 64);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
  CHECK(passed.count() < 2.0);
  CHECK(plan.parameters == 70'553'706'496);
  std::size_t ranks = 0;
  for (const RankNeeds& needs : plan.needs) {
    CHECK(sum_of(needs) == needs.peak_bytes);
    ranks += needs.ranks.size();
  }
  CHECK(ranks == 64);
}

TEST_CASE("what is planned without ranks is what the engine takes") {
  const int stage = GENERATE(0, 1, 2, 3);
  const RunConfig run = resolved(kSmall, 1, {"zero_optimization.stage=" + std::to_string(stage)});
  const RunPlan plan = plan_run(run, 1);
  SoloCommunicator solo;
  Model model = build_model(run.model);
  const EngineOptions options = engine_options(run, model, 1);
  const Engine engine(std::move(model), options, solo);
  CHECK(engine.memory_plan().arena_bytes == plan.peak_bytes());
  CHECK(engine.measured_peak_bytes() == plan.peak_bytes());
}

TEST_CASE("ranks with the same needs are folded, others are not") {
  const auto stage3 = std::vector<std::string>{"zero_optimization.stage=3"};
  auto weighted = stage3;
  weighted.emplace_back("placement.shards=[1, 3, 1, 0]");
  const RunPlan plan = plan_run(resolved(kSmall, 4, weighted), 4);
  CHECK(plan.needs_of(1).peak_bytes > plan.needs_of(0).peak_bytes);
  CHECK(plan.needs_of(3).peak_bytes < plan.needs_of(0).peak_bytes);
  for (const RankNeeds& needs : plan.needs) CHECK(sum_of(needs) == needs.peak_bytes);
  const RunPlan whole = plan_run(resolved(kSmall, 4), 4);
  CHECK(whole.needs.size() == 1);
}

TEST_CASE("when memory is short, alternatives are planned and the smallest that fits is found") {
  const RunConfig run = resolved(kSmall, 4);
  const RunPlan plan = plan_run(run, 4);
  const DeviceMemory memory({plan.peak_bytes() - 1}, 4);
  CHECK(!memory.holds(plan));
  CHECK(DeviceMemory({plan.peak_bytes()}, 4).holds(plan));
  const std::vector<Alternative> tried = find_alternatives(run, memory);
  REQUIRE(!tried.empty());
  CHECK(tried.front().change == "zero_optimization.stage=1");
  CHECK(tried.front().fits);
  for (const Alternative& a : tried) CHECK(a.fits == (a.peak_bytes < plan.peak_bytes()));

  const RunPlan staged = plan_run(resolved(kSmall, 4, {"zero_optimization.stage=1"}), 4);
  CHECK(staged.peak_bytes() == tried.front().peak_bytes);
}

TEST_CASE("changes are put together when none suffices alone") {
  const RunConfig run = resolved(kSmall, 2);
  const std::vector<Alternative> tried = find_alternatives(run, DeviceMemory({1}, 2));
  CHECK(std::none_of(tried.begin(), tried.end(), [](const auto& a) { return a.fits; }));
  const auto joint = std::find_if(tried.begin(), tried.end(), [](const Alternative& a) {
    return a.change.find("stage=3, ") != std::string::npos &&
           a.change.find("activation_checkpointing.enabled=true") != std::string::npos;
  });
  REQUIRE(joint != tried.end());
  CHECK(joint->peak_bytes < tried.front().peak_bytes);
}

TEST_CASE("each rank is held against its own device") {
  const RunConfig run = resolved(kSmall, 2, {"zero_optimization.stage=3"});
  const RunPlan plan = plan_run(run, 2);
  const std::int64_t enough = plan.peak_bytes();
  CHECK(DeviceMemory({enough, enough}, 2).holds(plan));
  const DeviceMemory second({enough, 1000}, 2);
  CHECK(!second.holds(plan));
  CHECK(second.shortest_rank(plan) == 1);
  CHECK_THROWS_AS(DeviceMemory({1, 2, 3}, 2), ArgumentError);
}

namespace {

/// The smallest change for a run on ranks of these memories, and whether it really does.
std::string smallest_change(const std::vector<std::string>& overrides,
                            const std::vector<std::int64_t>& memory, int world = 4) {
  const RunConfig run = resolved(kSmall, world, overrides);
  const std::vector<Alternative> tried = find_alternatives(run, DeviceMemory(memory, world));
  const auto found = std::find_if(tried.begin(), tried.end(), [](const auto& a) { return a.fits; });
  return found == tried.end() ? "" : found->change;
}

std::int64_t peak_of(const std::vector<std::string>& overrides, int world = 4) {
  return plan_run(resolved(kSmall, world, overrides), world).peak_bytes();
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::string& b) {
  a.push_back(b);
  return a;
}

const std::vector<std::string> kLeast = {"zero_optimization.stage=3",
                                         "train_micro_batch_size_per_gpu=1",
                                         "activation_checkpointing.enabled=true"};

}  // namespace

TEST_CASE("gathering late, resharding and larger groups are single changes") {
  const std::int64_t late = peak_of(kLeast + "zero_optimization.prefetch_units=0");
  CHECK(smallest_change(kLeast, {late}) == "zero_optimization.prefetch_units=0");
  const auto kept = kLeast + "zero_optimization.reshard_after_forward=false";
  CHECK(smallest_change(kept, {peak_of(kLeast)}) == "zero_optimization.reshard_after_forward=true");
  const auto grouped = kLeast + "zero_optimization.shard_group_size=2";
  CHECK(smallest_change(grouped, {peak_of(kLeast)}) == "zero_optimization.shard_group_size=0");
}

TEST_CASE("two changes that do are told before three, each as mild as fits") {
  const std::vector<std::string> two = {"zero_optimization.stage=3",
                                        "train_micro_batch_size_per_gpu=2"};
  const std::int64_t enough = peak_of(two);
  REQUIRE(peak_of({"zero_optimization.stage=3"}) > enough);
  REQUIRE(peak_of({"train_micro_batch_size_per_gpu=1"}) > enough);
  REQUIRE(peak_of({"zero_optimization.stage=2", two.back()}) > enough);
  CHECK(smallest_change({}, {enough}) ==
        "zero_optimization.stage=3, train_micro_batch_size_per_gpu=2 (train_batch_size stays 8)");
}

TEST_CASE("sizes that are equal are the same however they are given") {
  const std::int64_t less = peak_of(kLeast + "zero_optimization.prefetch_units=0") - 1;
  const std::string more = smallest_change(kLeast, {less});
  CHECK(more.find("--ranks 8") != std::string::npos);
  CHECK(smallest_change(kLeast, {less, less, less, less}) == more);
}

TEST_CASE("when nothing helps, it is told what would do, and that does") {
  const RunConfig run = resolved(kSmall, 4, {"placement.shards=[1, 2, 1, 1]"});
  const DeviceMemory memory({1000, 2000, 1000, 1000}, 4);
  const Verdict verdict = judge(run, plan_run(run, 4), memory);
  REQUIRE(!verdict.fits);
  const std::int64_t least = peak_of(kLeast + "zero_optimization.prefetch_units=0");
  INFO(conclusion(verdict));
  CHECK(parse_bytes(bytes_text_up(least)) >= least);
  CHECK(verdict.least.find(bytes_text_up(least) + " on every rank would do, with ") == 0);
  CHECK(conclusion(verdict).find(verdict.least) != std::string::npos);
}

TEST_CASE("a lower stage is advised where what a higher one gathers takes more") {
  constexpr const char* kTwoLayers = R"({
    "model": {"model_type": "mlp", "layers": [32, 512, 8]}, "data": {"format": "synthetic"},
    "steps": 1, "train_batch_size": 64, "train_micro_batch_size_per_gpu": 32})";
  const std::string small = "train_micro_batch_size_per_gpu=1";
  const RunConfig run = resolved(kTwoLayers, 2);
  const RunConfig first = resolved(kTwoLayers, 2, {"zero_optimization.stage=1", small});
  const RunConfig last = resolved(kTwoLayers, 2, {"zero_optimization.stage=3", small});
  const std::int64_t enough = plan_run(first, 2).peak_bytes();
  REQUIRE(plan_run(last, 2).peak_bytes() > enough);
  const Verdict verdict = judge(run, plan_run(run, 2), DeviceMemory({enough}, 2));
  INFO(conclusion(verdict));
  CHECK(conclusion(verdict).find("that fits: zero_optimization.stage=1, " + small) !=
        std::string::npos);
}

TEST_CASE("a run that shards nothing is told to shard, by memory where ranks differ") {
  const std::vector<std::string> whole = {"train_micro_batch_size_per_gpu=1",
                                          "activation_checkpointing.enabled=true"};
  const std::int64_t even = peak_of(kLeast + "zero_optimization.prefetch_units=0");
  const std::string change = smallest_change(whole, {even * 9 / 10, even * 2, even, even});
  CAPTURE(change);
  CHECK(change.find("zero_optimization.stage=") == 0);
  CHECK(change.find(", placement.shards=memory") != std::string::npos);
}

TEST_CASE("what the search finds is told where no change of a key does") {
  const std::int64_t even = peak_of(kLeast + "zero_optimization.prefetch_units=0");
  const DeviceMemory memory({even, even + 1000, even, even}, 4);
  const auto found = find_any_fit(resolved(kSmall, 4), memory);
  REQUIRE(found);
  CHECK(memory.holds(found->plan));
  CHECK(!find_any_fit(resolved(kSmall, 4), DeviceMemory({even / 4}, 4)));
}
