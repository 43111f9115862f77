#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <ctime>
#include <numeric>

#include "models/build.h"
#include "runtime/plan.h"

using namespace sherd;

namespace {

ModelConfig llama_70b() {
  ModelConfig config;
  config.model_type = "llama";
  config.vocab_size = 128256;
  config.hidden_size = 8192;
  config.intermediate_size = 28672;
  config.num_hidden_layers = 80;
  config.num_attention_heads = 64;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  return config;
}

ModelConfig deep_llama(int layers) {
  ModelConfig config = llama_70b();
  config.hidden_size = config.head_dim = 8;
  config.intermediate_size = 8;
  config.vocab_size = 16;
  config.num_attention_heads = config.num_key_value_heads = 1;
  config.num_hidden_layers = layers;
  return config;
}

/// Of this process's time, which other programs don't lengthen.
double seconds_to_plan(int layers, int stage) {
  constexpr int kRanks = 4;
  const Model model = build_model(deep_llama(layers));
  const std::clock_t started = std::clock();
  LayoutOptions layout_options;
  layout_options.group_size = kRanks;
  const ShardLayout layout(model.units, layout_options);
  PlanOptions options;
  options.world = kRanks;
  options.stage = stage;
  options.rounds = 2;
  const PlanInput input = plan_input(model, layout, {1, 16}, options);
  const Plan plan = make_plan(input, options);
  const MemoryPlan memory = plan_memory(plan, layout, 0);
  verify(plan, memory);
  CHECK(memory.arena_bytes > 0);
  return static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("A plan of thousands of layers is made in about a second") {
  const int stage = GENERATE(0, 3);
  constexpr int kFew = 1000;
  const double few = seconds_to_plan(kFew, stage);
  const double many = seconds_to_plan(4 * kFew, stage);
  CAPTURE(stage, few, many);
  // Packing compares each region with those before it, which is 16 times the work; cubic is 64.
  CHECK(many < 32.0 * few);
  CHECK(many < 20.0);  // with sanitizers
}

TEST_CASE("A 70B Llama over 64 ranks is planned and verified in under two seconds") {
  constexpr int kRanks = 64;
  const Model model = build_model(llama_70b());
  const auto started = std::chrono::steady_clock::now();
  LayoutOptions layout_options;
  layout_options.group_size = kRanks;
  const ShardLayout layout(model.units, layout_options);
  PlanOptions options;
  options.world = kRanks;
  options.stage = 3;
  options.rounds = 4;
  options.prefetch = 2;
  options.compute = options.wire = DType::bf16;
  options.recompute.assign(model.units.size(), true);
  const PlanInput input = plan_input(model, layout, {1, 4096}, options);
  const Plan plan = make_plan(input, options);
  std::int64_t at_rest = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const MemoryPlan memory = plan_memory(plan, layout, rank);
    if (rank == 0 || rank == kRanks - 1) REQUIRE_NOTHROW(verify(plan, memory));
    CHECK(std::accumulate(std::begin(memory.bytes_by_tag), std::end(memory.bytes_by_tag),
                          memory.slack_bytes) == memory.arena_bytes);
    CHECK(memory.slack_bytes < memory.arena_bytes / 20);
    at_rest += memory.persistent_bytes;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  CHECK(took.count() < 2.0);
  CHECK(layout.parameter_count() == 70553706496);
  // bf16 value, 16-bit remainder, gradient and two moments: 16 bytes a parameter over all ranks,
  // and a little for padding and what every rank needs.
  const auto states = static_cast<double>(layout.parameter_count()) * 16.0;
  CHECK(static_cast<double>(at_rest) >= states);
  CHECK(static_cast<double>(at_rest) < 1.02 * states);
}
