#include "apps/run_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
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

/// Ranks that are alike are named once.
std::vector<RankPace> find_paces(const Model& model, const ShardLayout& layout,
                                 const EngineOptions& options, const MicroBatchCut& cut,
                                 std::span<const Rates> rates) {
  const int world = static_cast<int>(cut.ranks.size());
  require(rates.size() == 1 || rates.size() == cut.ranks.size(),
          "expected rates for all {} ranks alike, or for each; got {}", world, rates.size());
  std::vector<RankPace> paces;
  std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>> known;
  for (int rank = 0; rank < world; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const std::size_t which = rates.size() == 1 ? 0 : r;
    const std::size_t first_like_it = static_cast<std::size_t>(
        std::find(rates.begin(), rates.end(), rates[which]) - rates.begin());
    const BatchShape shape = micro_batch_of_rank(options, rank, world);
    if (!known.emplace(first_like_it, shape.samples, cut.ranks[r].count).second) continue;
    const PlanInput input = plan_input(model, layout, shape, options.plan);
    paces.push_back(
        {rates[which], unit_work(model, input, shape, options.plan), cut.ranks[r].count});
  }
  return paces;
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
  if (extras.nodes != nullptr) {
    const PlanInput input = plan_input(model, layout, options.largest_micro_batch, options.plan);
    *extras.nodes = list_nodes(step, input);
  }
  if (!extras.rates.empty()) {
    const auto paces = find_paces(model, layout, options, result.batch, extras.rates);
    result.time = predict_step(step, layout, paces);
  }
  return result;
}

}  // namespace sherd
