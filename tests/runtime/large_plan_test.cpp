#include <catch2/catch_test_macros.hpp>
#include <chrono>
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

}  // namespace

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
