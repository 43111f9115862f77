#include "runtime/step_time.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/engine.h"
#include "runtime/engine_options.h"

using namespace sherd;
using Catch::Approx;

namespace {

constexpr double kFast = 1e30;

/// A Llama of three blocks, an embedding and a head.
RunConfig small_llama(const std::vector<std::string>& changes, int world) {
  LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 36,
                    "intermediate_size": 53, "num_hidden_layers": 3, "num_attention_heads": 3,
                    "max_position_embeddings": 16},
          "data": {"format": "synthetic", "sequence_length": 16}, "steps": 1,
          "train_batch_size": 16, "train_micro_batch_size_per_gpu": 2})",
      "test", changes);
  resolve_for_world(config, world);
  return config.run;
}

/// Of ranks of which all are alike, or each has its own rates.
StepTime time_of(const std::vector<Rates>& rates, const std::vector<std::string>& changes,
                 int world = 4) {
  const RunConfig run = small_llama(changes, world);
  const Model model = build_model(run.model);
  const EngineOptions options = engine_options(run, model, world);
  const ShardLayout layout(model.units, layout_options(options, world));
  const BatchShape& shape = options.largest_micro_batch;
  const PlanInput input = plan_input(model, layout, shape, options.plan);
  const Plan plan = make_plan(input, options.plan);
  std::vector<RankPace> paces;
  paces.reserve(rates.size());
  for (const Rates& own : rates) {
    paces.push_back({own, unit_work(model, input, shape, options.plan), options.plan.rounds});
  }
  return predict_step(plan, layout, paces);
}

StepTime time_of(const Rates& rates, const std::vector<std::string>& changes, int world = 4) {
  return time_of(std::vector<Rates>{rates}, changes, world);
}

double flops_of_step(int rounds) {
  LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "llama", "vocab_size": 101, "hidden_size": 36,
                    "intermediate_size": 53, "num_hidden_layers": 3, "num_attention_heads": 3,
                    "max_position_embeddings": 16}})",
      "test");
  double flops = 0.0;
  for (const auto& unit : build_model(config.run.model).units)
    flops += unit->forward_flops({2, 16});
  return 3.0 * rounds * flops;
}

}  // namespace

TEST_CASE("with nothing but products to do, a step takes three times the forward pass") {
  const std::string stage = "zero_optimization.stage=" + GENERATE(as<std::string>(), "0", "2", "3");
  const StepTime time = time_of({1.0, kFast, kFast, 0.0, 0.0}, {stage});
  CHECK(time.seconds == Approx(flops_of_step(2)));
  CHECK(time.exposed == Approx(0.0).margin(1e-9 * time.seconds));
  const StepTime again =
      time_of({1.0, kFast, kFast, 0.0, 0.0}, {stage, "activation_checkpointing.enabled=true"});
  CHECK(again.seconds > time.seconds);
  CHECK(again.seconds < 4.0 / 3.0 * time.seconds);
}

TEST_CASE(
    "communication that computation hides costs nothing, and what it cannot hide is exposed") {
  const std::string stage = "zero_optimization.stage=3";
  const Rates quick{1e9, kFast, 1e12, 0.0, 0.0};
  const Rates slow{1e9, kFast, 1e4, 0.0, 0.0};
  CHECK(time_of(quick, {stage}).exposed < 0.01 * time_of(quick, {stage}).seconds);
  CHECK(time_of(slow, {stage}).exposed > 0.5 * time_of(slow, {stage}).seconds);
  const double sequential =
      time_of({1e9, kFast, 1e8, 0.0, 0.0}, {stage, "zero_optimization.overlap_comm=false"}).seconds;
  CHECK(time_of({1e9, kFast, 1e8, 0.0, 0.0}, {stage}).seconds < sequential);
}

namespace {

struct Cost {
  std::int64_t peak_bytes = 0;
  double seconds = 0.0;
};

/// Of a Llama of six blocks, an embedding and a head, of which these units run again.
Cost cost_of(const std::vector<bool>& recompute, const std::string& stage) {
  const RunConfig run = small_llama({"model.num_hidden_layers=6", stage}, 4);
  const Model model = build_model(run.model);
  EngineOptions options = engine_options(run, model, 4);
  options.plan.recompute = recompute;
  const ShardLayout layout(model.units, layout_options(options, 4));
  const PlanInput input = plan_input(model, layout, options.largest_micro_batch, options.plan);
  const Plan plan = make_plan(input, options.plan);
  const RankPace pace{{1e9, 1e9, 1e9, 1e-6, 1e-6},
                      unit_work(model, input, options.largest_micro_batch, options.plan),
                      options.plan.rounds};
  return {plan_memory(plan, layout, 0).arena_bytes,
          predict_step(plan, layout, std::vector<RankPace>{pace}).seconds};
}

}  // namespace

TEST_CASE("of equal blocks no others take less memory than the first when they run again") {
  constexpr unsigned kUnits = 7;  // the head never does
  const std::string stage = "zero_optimization.stage=" + GENERATE(as<std::string>(), "0", "3");
  for (unsigned others = 0; others < 1u << kUnits; ++others) {
    std::vector<bool> chosen(kUnits + 1);
    std::vector<bool> first(kUnits + 1);
    unsigned count = 0;
    for (unsigned unit = 0; unit < kUnits; ++unit) {
      chosen[unit] = ((others >> unit) & 1) != 0;
      if (chosen[unit]) first[count++] = true;
    }
    if (!chosen[0]) continue;  // the embedding costs nothing to run again
    const Cost a = cost_of(first, stage);
    const Cost b = cost_of(chosen, stage);
    CAPTURE(stage, others, count);
    CHECK(a.peak_bytes <= b.peak_bytes);
    CHECK(a.seconds <= 1.02 * b.seconds);
  }
}

TEST_CASE("unequal shards make collectives as slow as the rank that sends most") {
  const Rates rates{kFast, kFast, 1e6, 0.0, 0.0};
  const double even = time_of(rates, {"zero_optimization.stage=3"}).seconds;
  const double uneven =
      time_of(rates, {"zero_optimization.stage=3", "placement.shards=[3, 1, 1, 1]"}).seconds;
  CHECK(uneven == Approx(2.0 * even).epsilon(0.1));
}

TEST_CASE("one rank communicates nothing") {
  const StepTime time = time_of({1e9, kFast, 1.0, 1.0, 0.0}, {}, 1);
  CHECK(time.exposed == Approx(0.0).margin(1e-9 * time.seconds));
}

TEST_CASE("a step takes as long as the slowest rank, and waiting for it is not communication") {
  const std::string stage = "zero_optimization.stage=" + GENERATE(as<std::string>(), "0", "1", "3");
  const Rates fast{1e9, kFast, kFast, 0.0, 0.0};
  const Rates slow{1e8, kFast, kFast, 0.0, 0.0};
  const StepTime mixed = time_of({fast, slow, fast, fast}, {stage});
  CHECK(mixed.seconds == Approx(time_of(slow, {stage}).seconds));
  CHECK(mixed.exposed == Approx(0.0).margin(1e-9 * mixed.seconds));
}

TEST_CASE("a rank that runs out of micro-batches waits for the others") {
  const Rates rates{1e9, kFast, kFast, 0.0, 0.0};
  const LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "mlp", "layers": [8, 8, 4]},
          "data": {"format": "synthetic"}, "steps": 1, "train_batch_size": 4,
          "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}})",
      "test");
  const Model model = build_model(config.run.model);
  PlanOptions plan_options;
  plan_options.world = plan_options.group_size = 2;
  plan_options.stage = 3;
  plan_options.rounds = 3;
  LayoutOptions layout_options;
  layout_options.group_size = 2;
  const ShardLayout layout(model.units, layout_options);
  const PlanInput input = plan_input(model, layout, {1, 1}, plan_options);
  const Plan plan = make_plan(input, plan_options);
  const std::vector<UnitWork> work = unit_work(model, input, {1, 1}, plan_options);
  const auto seconds = [&](std::int64_t first, std::int64_t second) {
    const std::vector<RankPace> paces = {{rates, work, first}, {rates, work, second}};
    return predict_step(plan, layout, paces).seconds;
  };
  CHECK(seconds(1, 3) == Approx(seconds(3, 3)));
  CHECK(seconds(1, 1) == Approx(seconds(3, 3) / 3.0));
}
