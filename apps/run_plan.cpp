#include "apps/run_plan.h"

#include <algorithm>

#include "models/build.h"
#include "runtime/engine_options.h"

namespace sherd {
namespace {

/// The plans of a step and of an evaluation, which share the arena.
struct Plans {
  Plan step;
  Plan evaluation;
};

Plans make_plans(const PlanInput& input, const PlanOptions& options) {
  PlanOptions evaluation = options;
  evaluation.evaluate = true;
  return {make_plan(input, options), make_plan(input, evaluation)};
}

RankNeeds find_needs(const Plans& plans, const ShardLayout& layout, int group_rank) {
  const MemoryPlan step = plan_memory(plans.step, layout, group_rank);
  const MemoryPlan evaluation = plan_memory(plans.evaluation, layout, group_rank);
  verify(plans.step, step);
  verify(plans.evaluation, evaluation);
  RankNeeds needs;
  needs.peak_bytes = std::max(step.arena_bytes, evaluation.arena_bytes);
  std::int64_t sum = 0;
  for (std::size_t tag = 0; tag < needs.bytes.size(); ++tag) {
    needs.bytes[tag] = step.bytes_by_tag[tag];
    sum += needs.bytes[tag];
  }
  needs.gap_bytes = needs.peak_bytes - sum;
  needs.bytes[static_cast<std::size_t>(MemoryTag::workspace)] += needs.gap_bytes;
  needs.traffic = traffic(plans.step, layout, group_rank);
  return needs;
}

/// Ranks whose regions have the same sizes need the same, so that one of them is packed.
std::vector<RankNeeds> find_all_needs(const Plans& plans, const ShardLayout& layout, int world) {
  const int group = layout.group_size();
  std::vector<RankNeeds> found;
  std::vector<std::vector<std::int64_t>> known;
  for (int rank = 0; rank < world; ++rank) {
    std::vector<std::int64_t> sizes = region_sizes(plans.step, layout, rank % group);
    const auto same = std::find(known.begin(), known.end(), sizes) - known.begin();
    if (same == static_cast<std::ptrdiff_t>(known.size())) {
      known.push_back(std::move(sizes));
      found.push_back(find_needs(plans, layout, rank % group));
    }
    found[static_cast<std::size_t>(same)].ranks.push_back(rank);
  }
  return found;
}

}  // namespace

const RankNeeds& RunPlan::needs_of(int rank) const {
  return *std::find_if(needs.begin(), needs.end(), [&](const RankNeeds& n) {
    return std::find(n.ranks.begin(), n.ranks.end(), rank) != n.ranks.end();
  });
}

std::int64_t RunPlan::peak_bytes() const {
  std::int64_t most = 0;
  for (const RankNeeds& n : needs) most = std::max(most, n.peak_bytes);
  return most;
}

RunPlan plan_run(const RunConfig& run, int world, std::string* nodes) {
  const Model model = build_model(run.model);
  const EngineOptions options = engine_options(run, model, world);
  LayoutOptions cut;
  cut.group_size = options.plan.group_size;
  cut.weights = options.shard_weights;
  cut.granularity = options.shard_granularity;
  const ShardLayout layout(model.units, cut);
  const PlanInput input = plan_input(model, layout, options.largest_micro_batch, options.plan);
  const Plans plans = make_plans(input, options.plan);
  RunPlan result;
  result.model = model.description;
  result.world = world;
  result.options = options.plan;
  result.batch = run.batch;
  result.batch.accumulation = options.plan.rounds;
  result.largest_micro_batch = options.largest_micro_batch;
  result.parameters = layout.parameter_count();
  result.needs = find_all_needs(plans, layout, world);
  result.node_count = static_cast<std::int64_t>(plans.step.nodes.size());
  result.hash = plan_hash(plans.step, layout);
  if (nodes != nullptr) *nodes = list_nodes(plans.step, input);
  return result;
}

}  // namespace sherd
