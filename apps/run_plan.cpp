#include "apps/run_plan.h"

#include <algorithm>
#include <map>

#include "models/build.h"
#include "runtime/engine_options.h"

namespace sherd {
namespace {

/// The plans of a step and of an evaluation, which share the arena.
struct Plans {
  Plan step;
  Plan evaluation;
};

/// Of the ranks whose largest micro-batch has `samples`.
Plans make_plans(const Model& model, const ShardLayout& layout, const EngineOptions& options,
                 std::int64_t samples) {
  const BatchShape shape{samples, options.largest_micro_batch.sequence};
  const PlanInput input = plan_input(model, layout, shape, options.plan);
  PlanOptions evaluation = options.plan;
  evaluation.evaluate = true;
  return {make_plan(input, options.plan), make_plan(input, evaluation)};
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
std::vector<RankNeeds> find_all_needs(const std::map<std::int64_t, Plans>& plans,
                                      const ShardLayout& layout, const EngineOptions& options,
                                      int world) {
  std::vector<RankNeeds> found;
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (int rank = 0; rank < world; ++rank) {
    const Plans& own = plans.at(micro_batch_of_rank(options, rank, world).samples);
    const int group_rank = rank % layout.group_size();
    const auto [same, is_new] =
        known.try_emplace(region_sizes(own.step, layout, group_rank), found.size());
    if (is_new) found.push_back(find_needs(own, layout, group_rank));
    found[same->second].ranks.push_back(rank);
  }
  return found;
}

/// The part of all elements that each rank of a group holds.
std::vector<double> find_held(const ShardLayout& layout) {
  std::vector<double> held(static_cast<std::size_t>(layout.group_size()), 0.0);
  double total = 0.0;
  for (const FlatBuffer& buffer : layout.buffers()) {
    total += static_cast<double>(buffer.numel);
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      held[rank] += static_cast<double>(buffer.shards[rank].numel);
    }
  }
  for (double& part : held) part /= total;
  return held;
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

RunPlan plan_run(const RunConfig& run, int world, const PlanExtras& extras) {
  const Model model = build_model(run.model);
  const EngineOptions options = engine_options(run, model, world);
  const ShardLayout layout(model.units, layout_options(options, world));
  std::map<std::int64_t, Plans> plans;
  for (int rank = 0; rank < world; ++rank) {
    const std::int64_t samples = micro_batch_of_rank(options, rank, world).samples;
    if (!plans.contains(samples)) {
      plans.emplace(samples, make_plans(model, layout, options, samples));
    }
  }
  const Plan& step = plans.at(options.largest_micro_batch.samples).step;
  RunPlan result;
  result.model = model.description;
  result.world = world;
  result.options = options.plan;
  result.batch = micro_batches_of(run, world);
  result.largest_micro_batch = options.largest_micro_batch;
  result.held = find_held(layout);
  result.parameters = layout.parameter_count();
  result.needs = find_all_needs(plans, layout, options, world);
  result.node_count = static_cast<std::int64_t>(step.nodes.size());
  result.hash = plan_hash(step, layout);
  const PlanInput input = plan_input(model, layout, options.largest_micro_batch, options.plan);
  if (extras.nodes != nullptr) *extras.nodes = list_nodes(step, input);
  if (extras.rates != nullptr) {
    const auto work = unit_work(model, input, options.largest_micro_batch, options.plan);
    result.time = predict_step(step, layout, work, *extras.rates);
  }
  return result;
}

}  // namespace sherd
