#include "apps/plan_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/quantity.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr int kShardAll = 3;
constexpr int kMostRanks = 4096;

/// A run and its number of ranks, as changed so far, and how to say so.
struct Variant {
  RunConfig run;
  int world = 1;
  std::vector<std::string> changes;
};

Variant with_stage(Variant variant, int stage) {
  variant.run.zero.stage = stage;
  variant.changes.push_back(fmt::format("zero_optimization.stage={}", stage));
  return variant;
}

Variant with_recompute(Variant variant) {
  variant.run.recompute = true;
  variant.changes.emplace_back("activation_checkpointing.enabled=true");
  return variant;
}

/// The step keeps its samples: what leaves the micro-batch becomes rounds of accumulation.
Variant with_micro(Variant variant, std::int64_t micro) {
  variant.run.batch.micro = micro;
  variant.changes.push_back(
      fmt::format("train_micro_batch_size_per_gpu={} (train_batch_size stays {})", micro,
                  variant.run.batch.train));
  return variant;
}

Variant with_ranks(Variant variant, int world) {
  variant.world = world;
  variant.changes.push_back(fmt::format("--ranks {}", world));
  return variant;
}

/// Most samples that a micro-batch of the run really has.
std::int64_t micro_samples(const RunConfig& run) {
  return std::min(run.batch.micro, run.batch.train);
}

std::vector<Variant> single_changes(const Variant& base, bool may_add_ranks) {
  std::vector<Variant> variants;
  for (int stage = base.run.zero.stage + 1; stage <= kShardAll && base.world > 1; ++stage) {
    variants.push_back(with_stage(base, stage));
  }
  if (!base.run.recompute) variants.push_back(with_recompute(base));
  for (std::int64_t micro = micro_samples(base.run) / 2; micro >= 1; micro /= 2) {
    variants.push_back(with_micro(base, micro));
  }
  if (may_add_ranks && base.run.zero.stage > 0) {
    variants.push_back(with_ranks(base, 2 * base.world));
  }
  return variants;
}

/// Everything that one change after the other can still save.
std::vector<Variant> joint_changes(const Variant& base, bool may_add_ranks) {
  std::vector<Variant> variants;
  Variant last = base;
  const auto add = [&](Variant next) {
    last = std::move(next);
    if (last.changes.size() > 1) variants.push_back(last);
  };
  if (base.world > 1 && base.run.zero.stage < kShardAll) add(with_stage(last, kShardAll));
  if (!base.run.recompute) add(with_recompute(last));
  if (micro_samples(base.run) > 1) add(with_micro(last, 1));
  if (!may_add_ranks) return variants;
  Variant sharded = last;
  if (base.world == 1 && base.run.zero.stage < kShardAll) sharded = with_stage(last, kShardAll);
  for (int world = 2 * base.world; world <= kMostRanks; world *= 2) {
    variants.push_back(with_ranks(sharded, world));
  }
  return variants;
}

/// Plans until one fits when `stop_early`, else all.
bool try_variants(const std::vector<Variant>& variants, const DeviceMemory& memory, bool stop_early,
                  std::vector<Alternative>& tried) {
  bool any = false;
  std::int64_t before = 0;
  for (const Variant& variant : variants) {
    const RunPlan plan = plan_run(variant.run, variant.world);
    const bool fits = memory.holds(plan);
    tried.push_back({fmt::format("{}", fmt::join(variant.changes, ", ")), plan.peak_bytes(), fits});
    any = any || fits;
    if (stop_early && (fits || plan.peak_bytes() == before)) break;  // more ranks save no more
    before = plan.peak_bytes();
  }
  return any;
}

}  // namespace

DeviceMemory::DeviceMemory(std::vector<std::int64_t> bytes, int world) : bytes_(std::move(bytes)) {
  require(bytes_.size() == 1 || static_cast<int>(bytes_.size()) == world,
          "--device-memory: expected one size, or {} (one per rank), got {}", world, bytes_.size());
}

std::int64_t DeviceMemory::of_rank(int rank) const {
  return bytes_.size() == 1 ? bytes_.front() : bytes_[static_cast<std::size_t>(rank)];
}

bool DeviceMemory::holds(const RunPlan& plan) const {
  return std::all_of(plan.needs.begin(), plan.needs.end(), [this](const RankNeeds& needs) {
    return std::all_of(needs.ranks.begin(), needs.ranks.end(),
                       [&](int rank) { return needs.peak_bytes <= of_rank(rank); });
  });
}

int DeviceMemory::shortest_rank(const RunPlan& plan) const {
  int shortest = 0;
  std::int64_t most = INT64_MIN;
  for (const RankNeeds& needs : plan.needs) {
    for (const int rank : needs.ranks) {
      const std::int64_t lacking = needs.peak_bytes - of_rank(rank);
      if (lacking <= most) continue;
      most = lacking;
      shortest = rank;
    }
  }
  return shortest;
}

std::vector<Alternative> find_alternatives(const RunConfig& run, int world,
                                           const DeviceMemory& memory) {
  const Variant base{run, world, {}};
  const bool tied_to_ranks = !run.placement.shard_weights.empty() ||
                             !run.placement.batch_weights.empty() || run.zero.shard_group_size > 0;
  const bool may_add_ranks = memory.is_same_for_all() && !tied_to_ranks;
  std::vector<Alternative> tried;
  if (!try_variants(single_changes(base, may_add_ranks), memory, false, tried)) {
    try_variants(joint_changes(base, may_add_ranks), memory, true, tried);
  }
  return tried;
}

}  // namespace sherd
