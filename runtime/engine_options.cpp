#include "runtime/engine_options.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/attention.h"
#include "runtime/config/batch.h"

namespace sherd {
namespace {

std::vector<std::int64_t> unit_sizes(const Model& model) {
  std::vector<std::int64_t> sizes;
  for (const auto& unit : model.units) {
    std::int64_t numel = 0;
    for (const ParameterSpec& spec : unit->parameters()) {
      if (spec.tied_to.empty()) numel += spec.shape.numel();
    }
    if (numel > 0) sizes.push_back(numel);
  }
  return sizes;
}

void set_communication(const ZeroConfig& zero, const Model& model, PlanOptions& plan) {
  const std::vector<std::int64_t> sizes = unit_sizes(model);
  plan.prefetch = zero.prefetch_elements ? units_in_bucket(sizes, *zero.prefetch_elements)
                                         : zero.prefetch_units;
  plan.reduce_burst = zero.reduce_bucket_elements
                          ? units_in_bucket(sizes, *zero.reduce_bucket_elements)
                          : zero.reduce_burst;
  plan.gather_burst = zero.gather_burst;
  plan.reshard_after_forward = zero.reshard_after_forward;
  if (zero.overlap) return;
  plan.prefetch = 0;
  plan.gather_burst = 1;
  plan.reduce_depth = 1;
}

/// Weights are given per rank; every group is cut alike.
std::vector<double> group_weights(const std::vector<double>& weights, int group) {
  if (weights.empty()) return {};
  const auto size = static_cast<std::size_t>(group);
  for (std::size_t r = size; r < weights.size(); ++r) {
    require(weights[r] == weights[r % size],
            "placement.shards: rank {} has weight {}, but rank {} of the first shard group has {}; "
            "every group of {} ranks is cut alike",
            r, weights[r], r % size, weights[r % size], group);
  }
  return {weights.begin(), weights.begin() + group};
}

/// By memory nothing is known until what ranks may take is known.
void require_placed(const PlacementConfig& placement) {
  constexpr const char* kHow =
      "say what each rank may take, with placement.memory or --device-memory";
  require(placement.shards == PlaceBy::weights || !placement.shard_counts.empty(),
          "placement.shards goes by memory: {}", kHow);
  require(placement.batch == PlaceBy::weights || !placement.rank_samples.empty(),
          "placement.batch depends on memory: {}", kHow);
}

/// Before anything is planned, what would otherwise end the first step.
void require_runs_on(DeviceChoice device, const ModelConfig& model) {
  require(device != DeviceChoice::cuda || model.head_dim <= kWidestHeadOnGpus,
          "attention on GPUs takes heads up to {} wide, but the model's are {} (head_dim, or "
          "hidden_size / num_attention_heads): give it more and narrower heads, or train on CPUs "
          "(device \"cpu\")",
          kWidestHeadOnGpus, model.head_dim);
}

std::vector<std::int64_t> largest_of_ranks(const MicroBatchCut& cut, int world) {
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(world));
  for (int rank = 0; rank < world; ++rank) samples.push_back(cut.largest_of_rank(rank));
  return samples;
}

std::int64_t most_samples(const MicroBatchCut& cut, int world) {
  const std::vector<std::int64_t> samples = largest_of_ranks(cut, world);
  return *std::max_element(samples.begin(), samples.end());
}

}  // namespace

int units_in_bucket(std::span<const std::int64_t> unit_sizes, std::int64_t elements) {
  if (elements == 0 || unit_sizes.empty()) return 0;
  std::vector<std::int64_t> sorted(unit_sizes.begin(), unit_sizes.end());
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t typical = sorted[sorted.size() / 2];
  const auto units = static_cast<std::int64_t>(sorted.size());
  const std::int64_t most = std::min<std::int64_t>(units, kMostUnitsInBucket);
  return static_cast<int>(std::clamp<std::int64_t>(elements / typical, 1, most));
}

EngineOptions engine_options(const RunConfig& run, const Model& model, int world) {
  require_runs_on(run.device, run.model);
  require_placed(run.placement);
  const MicroBatchCut cut = micro_batches_of(run, world);
  const bool tokens = model.sample.inputs == SampleSpec::Inputs::tokens;
  const std::int64_t sequence = tokens ? run.data.sequence_length : 1;
  EngineOptions options;
  PlanOptions& plan = options.plan;
  plan.world = world;
  plan.group_size = run.zero.shard_group_size == 0 ? world : run.zero.shard_group_size;
  plan.stage = run.zero.stage;
  plan.rounds = static_cast<int>(cut.rounds());
  set_communication(run.zero, model, plan);
  plan.recompute.assign(model.units.size(), false);
  const auto all = static_cast<std::int64_t>(model.units.size());
  const std::int64_t again = run.recompute_units == 0 ? all : std::min(all, run.recompute_units);
  std::fill_n(plan.recompute.begin(), again, run.recompute);
  plan.recompute.back() = false;
  plan.exact = run.exact;
  plan.compute = run.compute;
  plan.wire = run.wire.value_or(run.compute);
  plan.optimizer = run.optimizer;
  plan.device = run.device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu;
  options.shard_weights = group_weights(run.placement.shard_weights, plan.group_size);
  options.shard_counts = run.placement.shard_counts;
  if (!cut.rank_samples.empty()) options.rank_micro_samples = largest_of_ranks(cut, world);
  options.largest_micro_batch = {most_samples(cut, world), sequence};
  options.labels_per_step = run.batch.train * (model.sample.label_per_token ? sequence : 1);
  options.schedule = run.schedule;
  options.loss_scale = run.loss_scale;
  options.gradient_clipping = run.gradient_clipping;
  options.seed = run.seed;
  options.skip_limit = run.skip_limit;
  options.record_steps = run.record_steps;
  return options;
}

}  // namespace sherd
