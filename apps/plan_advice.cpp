#include "apps/plan_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/quantity.h"
#include "core/error.h"
#include "models/build.h"
#include "runtime/placement.h"

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

Variant with_shards_by_memory(Variant variant) {
  variant.run.placement.shards = PlaceBy::memory;
  variant.changes.emplace_back("placement.shards=memory");
  return variant;
}

Variant with_batch_by_memory(Variant variant) {
  variant.run.placement.batch = PlaceBy::memory;
  variant.changes.emplace_back("placement.batch=memory");
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

/// Whether shards, or samples, that go by memory would differ from what the run has.
bool can_share(const Variant& base, const DeviceMemory& memory) {
  return !memory.is_same_for_all() && base.run.placement.shards == PlaceBy::weights &&
         base.run.zero.shard_group_size != 1;
}
bool can_deal(const Variant& base, const DeviceMemory& memory) {
  return !memory.is_same_for_all() && base.run.placement.batch == PlaceBy::weights;
}
bool can_cut_samples(const Variant& base) {
  return base.run.placement.batch == PlaceBy::weights && micro_samples(base.run) > 1;
}

std::vector<Variant> single_changes(const Variant& base, const DeviceMemory& memory,
                                    bool may_add_ranks) {
  std::vector<Variant> variants;
  if (can_share(base, memory) && base.run.zero.stage > 0) {
    variants.push_back(with_shards_by_memory(base));
  }
  if (can_deal(base, memory)) variants.push_back(with_batch_by_memory(base));
  for (int stage = base.run.zero.stage + 1; stage <= kShardAll && base.world > 1; ++stage) {
    variants.push_back(with_stage(base, stage));
  }
  if (!base.run.recompute) variants.push_back(with_recompute(base));
  for (std::int64_t micro = micro_samples(base.run) / 2; can_cut_samples(base) && micro >= 1;
       micro /= 2) {
    variants.push_back(with_micro(base, micro));
  }
  if (may_add_ranks && base.run.zero.stage > 0) {
    variants.push_back(with_ranks(base, 2 * base.world));
  }
  return variants;
}

/// Everything that one change after the other can still save.
std::vector<Variant> joint_changes(const Variant& base, const DeviceMemory& memory,
                                   bool may_add_ranks) {
  std::vector<Variant> variants;
  Variant last = base;
  const auto add = [&](Variant next) {
    last = std::move(next);
    if (last.changes.size() > 1) variants.push_back(last);
  };
  if (base.world > 1 && base.run.zero.stage < kShardAll) add(with_stage(last, kShardAll));
  if (can_share(last, memory) && last.run.zero.stage > 0) add(with_shards_by_memory(last));
  if (!base.run.recompute) add(with_recompute(last));
  if (can_cut_samples(base)) add(with_micro(last, 1));
  if (!may_add_ranks) return variants;
  Variant sharded = last;
  if (base.world == 1 && base.run.zero.stage < kShardAll) sharded = with_stage(last, kShardAll);
  for (int world = 2 * base.world; world <= kMostRanks; world *= 2) {
    variants.push_back(with_ranks(sharded, world));
  }
  return variants;
}

RunPlan planned(Variant variant, const DeviceMemory& memory) {
  const Model model = build_model(variant.run.model);
  place_run(variant.run, model, variant.world, memory.per_rank(variant.world));
  return plan_run(variant.run, variant.world);
}

/// Plans until one fits when `stop_early`, else all.
bool try_variants(const std::vector<Variant>& variants, const DeviceMemory& memory, bool stop_early,
                  std::vector<Alternative>& tried) {
  bool any = false;
  std::int64_t before = 0;
  for (const Variant& variant : variants) {
    const RunPlan plan = planned(variant, memory);
    const bool fits = memory.holds(plan);
    tried.push_back({fmt::format("{}", fmt::join(variant.changes, ", ")), plan.peak_bytes(), fits});
    any = any || fits;
    if (stop_early && (fits || plan.peak_bytes() == before)) break;  // more ranks save no more
    before = plan.peak_bytes();
  }
  return any;
}

const Alternative* smallest_that_fits(const std::vector<Alternative>& alternatives) {
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [](const Alternative& a) { return a.fits; });
  return found == alternatives.end() ? nullptr : &*found;
}

}  // namespace

DeviceMemory::DeviceMemory(std::vector<std::int64_t> bytes, int world) : bytes_(std::move(bytes)) {
  require(bytes_.size() == 1 || static_cast<int>(bytes_.size()) == world,
          "--device-memory: expected one size, or {} (one per rank), got {}", world, bytes_.size());
}

std::vector<std::int64_t> DeviceMemory::per_rank(int world) const {
  return memory_per_rank(bytes_, world);
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
  if (!try_variants(single_changes(base, memory, may_add_ranks), memory, false, tried)) {
    try_variants(joint_changes(base, memory, may_add_ranks), memory, true, tried);
  }
  return tried;
}

Verdict judge(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory) {
  Verdict verdict;
  verdict.fits = memory.holds(plan);
  if (verdict.fits) return verdict;
  const int rank = memory.shortest_rank(plan);
  verdict.problem =
      fmt::format("rank {} needs {}, its device has {}", rank,
                  bytes_text(plan.needs_of(rank).peak_bytes), bytes_text(memory.of_rank(rank)));
  verdict.alternatives = find_alternatives(run, plan.world, memory);
  return verdict;
}

std::string conclusion(const Verdict& verdict) {
  const Alternative* best = smallest_that_fits(verdict.alternatives);
  if (best == nullptr) return verdict.problem + "; none of the changes tried makes it fit";
  return fmt::format("{}; the smallest change that fits: {} (peak {})", verdict.problem,
                     best->change, bytes_text(best->peak_bytes));
}

}  // namespace sherd
