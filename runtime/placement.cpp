#include "runtime/placement.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "core/buffer.h"
#include "core/error.h"
#include "runtime/config/batch.h"
#include "runtime/engine_options.h"
#include "runtime/plan.h"
#include "runtime/share_elements.h"

// What a rank takes is its shards, and a rest that its micro-batch decides: temporaries are packed
// above the persistent regions, so their height does not depend on the shards. One more thing does
// depend on them: the buffers that reductions arrive in are as large as the largest shard of any
// rank. So shards are cut for the rest that an even cut has, then again for the rest that the cut
// before has, until no rank takes more than it may. Where that never comes, the largest shards are
// held down: smaller ones leave every rank more room, and an even cut, the last resort, leaves
// most. What can't be filled so is cut by room, so that what fits by memory fits when filled too.

namespace sherd {
namespace {

using Counts = std::vector<std::vector<std::int64_t>>;

constexpr int kCapSteps = 6;  // halvings between the largest shard with room and an even one

/// What a layout and a micro-batch make of ranks' memory.
struct Demand {
  std::vector<SharedBuffer> buffers;
  std::vector<std::int64_t> shard_bytes;  ///< per rank of a group
  std::int64_t rest_bytes = 0;            ///< besides shards
};

std::vector<SharedBuffer> shared_buffers(const Plan& plan, const ShardLayout& layout) {
  std::vector<SharedBuffer> buffers;
  for (const FlatBuffer& buffer : layout.buffers()) buffers.push_back({buffer.numel, {}});
  for (const Region& region : plan.regions) {
    if (region.shard_of < 0) continue;
    buffers[static_cast<std::size_t>(region.shard_of)].element_bytes.push_back(
        region.bytes_per_element);
  }
  return buffers;
}

std::vector<std::int64_t> shard_bytes(std::span<const SharedBuffer> buffers,
                                      const ShardLayout& layout) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(layout.group_size()), 0);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const std::vector<Shard>& shards = layout.buffers()[b].shards;
    for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
      bytes[rank] += bytes_at_rest(buffers[b], shards[rank].numel);
    }
  }
  return bytes;
}

/// Parts of regions are aligned as a whole when a granule of each is.
std::int64_t granularity_of(std::span<const SharedBuffer> buffers) {
  std::int64_t fewest_bytes = kAlignmentBytes;
  for (const SharedBuffer& buffer : buffers) {
    for (const int bytes : buffer.element_bytes) {
      fewest_bytes = std::min<std::int64_t>(fewest_bytes, bytes);
    }
  }
  return std::max(LayoutOptions().granularity, kAlignmentBytes / fewest_bytes);
}

class PlacementSearch {
 public:
  PlacementSearch(const RunConfig& run, const Model& model, int world,
                  std::span<const std::int64_t> memory);

  /// Deals the batch by memory or speed: samples of ranks and rounds of the step.
  void find_samples(PlacementConfig& found);
  /// Elements of ranks, for the micro-batches that they were found to have.
  Counts find_counts();

 private:
  Demand demand_of(const Counts& counts, std::int64_t samples) const;
  std::vector<std::int64_t> rests(const Counts& counts) const;
  std::vector<std::int64_t> peaks(const Counts& counts) const;
  bool fits(const Counts& counts) const;
  std::vector<std::int64_t> capacities(const std::vector<std::int64_t>& rests) const;
  Counts cut(const std::vector<SharedBuffer>& buffers, std::int64_t largest_bytes,
             ShareBy by) const;
  Counts cut_evenly() const;
  Counts find_counts(ShareBy by) const;
  std::vector<double> batch_weights();
  void set_rounds(const std::vector<std::int64_t>& rank_samples, std::int64_t rounds);

  const Model& model_;
  int world_;
  std::span<const std::int64_t> memory_;
  PlaceBy shards_;
  std::int64_t train_samples_;
  EngineOptions options_;              // for even shards, or the weights given
  std::vector<std::int64_t> largest_;  // samples of each rank's largest micro-batch
};

EngineOptions even_options(RunConfig run, const Model& model, int world) {
  run.placement.shards = run.placement.batch = PlaceBy::weights;
  return engine_options(run, model, world);
}

PlacementSearch::PlacementSearch(const RunConfig& run, const Model& model, int world,
                                 std::span<const std::int64_t> memory)
    : model_(model),
      world_(world),
      memory_(memory),
      shards_(run.placement.shards),
      train_samples_(run.batch.train),
      options_(even_options(run, model, world)) {
  const bool cuts = options_.plan.group_size > 1 && options_.plan.stage > 0;
  require(shards_ == PlaceBy::weights || cuts || world == 1,
          "placement.shards goes by memory, but nothing is cut into shards: set "
          "zero_optimization.stage to 1, 2 or 3, and shard_group_size to more than 1");
  largest_.assign(static_cast<std::size_t>(world), options_.largest_micro_batch.samples);
}

Demand PlacementSearch::demand_of(const Counts& counts, std::int64_t samples) const {
  EngineOptions options = options_;
  options.shard_counts = counts;
  options.largest_micro_batch.samples = samples;
  const ShardLayout layout(model_.units, layout_options(options, world_));
  const PlanInput input = plan_input(model_, layout, options.largest_micro_batch, options.plan);
  Demand demand;
  for (const bool evaluate : {false, true}) {
    options.plan.evaluate = evaluate;
    const Plan plan = make_plan(input, options.plan);
    demand.buffers = shared_buffers(plan, layout);
    demand.shard_bytes = shard_bytes(demand.buffers, layout);
    const std::int64_t arena = plan_memory(plan, layout, 0).arena_bytes;
    demand.rest_bytes = std::max(demand.rest_bytes, arena - demand.shard_bytes.front());
  }
  return demand;
}

/// Per rank, what it takes besides its shards.
std::vector<std::int64_t> PlacementSearch::rests(const Counts& counts) const {
  std::map<std::int64_t, std::int64_t> known;
  std::vector<std::int64_t> bytes;
  for (const std::int64_t samples : largest_) {
    const auto [found, inserted] = known.try_emplace(samples, 0);
    if (inserted) found->second = demand_of(counts, samples).rest_bytes;
    bytes.push_back(found->second);
  }
  return bytes;
}

std::vector<std::int64_t> PlacementSearch::peaks(const Counts& counts) const {
  const std::vector<std::int64_t> shards = demand_of(counts, 1).shard_bytes;
  std::vector<std::int64_t> bytes = rests(counts);
  for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
    bytes[rank] += shards[rank % shards.size()];
  }
  return bytes;
}

bool PlacementSearch::fits(const Counts& counts) const {
  const std::vector<std::int64_t> taken = peaks(counts);
  return std::equal(taken.begin(), taken.end(), memory_.begin(), std::less_equal<>());
}

/// What each rank of a group may hold at rest.
std::vector<std::int64_t> PlacementSearch::capacities(
    const std::vector<std::int64_t>& rests) const {
  const auto group = static_cast<std::size_t>(options_.plan.group_size);
  std::vector<std::int64_t> bytes(group, INT64_MAX);
  for (std::size_t rank = 0; rank < rests.size(); ++rank) {
    bytes[rank % group] = std::min(bytes[rank % group], memory_[rank] - rests[rank]);
  }
  return bytes;
}

/// Shards of at most `largest_bytes`, but for what does not divide.
Counts PlacementSearch::cut(const std::vector<SharedBuffer>& buffers, std::int64_t largest_bytes,
                            ShareBy by) const {
  constexpr int kMostRepeats = 8;
  Counts counts;
  std::vector<std::int64_t> rest = rests(counts);
  for (int repeat = 0; repeat < kMostRepeats; ++repeat) {
    std::vector<std::int64_t> room = capacities(rest);
    for (std::int64_t& bytes : room) bytes = std::min(bytes, largest_bytes);
    counts = share_elements(buffers, room, by, granularity_of(buffers));
    if (fits(counts)) break;
    const std::vector<std::int64_t> now = rests(counts);
    const std::vector<std::int64_t> before = rest;
    std::transform(rest.begin(), rest.end(), now.begin(), rest.begin(),
                   [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    if (rest == before) break;  // another cut would be the same
  }
  return counts;
}

Counts PlacementSearch::cut_evenly() const {
  const ShardLayout layout(model_.units, layout_options(options_, world_));
  Counts counts;
  for (const FlatBuffer& buffer : layout.buffers()) {
    counts.emplace_back();
    for (const Shard& shard : buffer.shards) counts.back().push_back(shard.numel);
  }
  return counts;
}

Counts PlacementSearch::find_counts(ShareBy by) const {
  const std::vector<SharedBuffer> buffers = demand_of({}, 1).buffers;
  Counts free = cut(buffers, INT64_MAX, by);
  if (fits(free)) return free;
  const std::int64_t needed = bytes_at_rest(buffers);
  std::int64_t most = 0;
  std::int64_t sum = 0;
  for (const std::int64_t room : capacities(rests({}))) {
    most = std::max(most, room);
    sum += std::max<std::int64_t>(0, room);
  }
  if (sum < needed) return free;  // not even where all have most room
  const Counts even = cut_evenly();
  std::optional<Counts> found;
  if (fits(even)) found = even;
  std::int64_t low = needed / options_.plan.group_size;
  for (int step = 0; step < kCapSteps; ++step) {
    const std::int64_t middle = low + (most - low) / 2;
    Counts counts = cut(buffers, middle, by);
    const bool works = fits(counts);
    if (works) found = std::move(counts);
    (works ? low : most) = middle;
  }
  return found.value_or(free);
}

Counts PlacementSearch::find_counts() {
  if (shards_ == PlaceBy::weights) return {};
  if (shards_ == PlaceBy::memory) return find_counts(ShareBy::room);
  Counts filled = find_counts(ShareBy::order);
  if (fits(filled)) return filled;
  Counts by_room = find_counts(ShareBy::room);
  return fits(by_room) ? by_room : filled;
}

/// What each rank has left when it runs one sample, before shards that go by memory.
std::vector<double> PlacementSearch::batch_weights() {
  largest_.assign(static_cast<std::size_t>(world_), 1);
  const std::vector<std::int64_t> taken = shards_ == PlaceBy::weights ? peaks({}) : rests({});
  std::vector<double> weights;
  for (std::size_t rank = 0; rank < taken.size(); ++rank) {
    weights.push_back(static_cast<double>(std::max<std::int64_t>(0, memory_[rank] - taken[rank])));
  }
  const bool any = std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0.0; });
  if (!any) weights.assign(weights.size(), 1.0);
  return weights;
}

void PlacementSearch::set_rounds(const std::vector<std::int64_t>& rank_samples,
                                 std::int64_t rounds) {
  const MicroBatchCut cut = cut_by_rank(rank_samples, rounds);
  options_.plan.rounds = static_cast<int>(cut.rounds());
  for (int rank = 0; rank < world_; ++rank) {
    largest_[static_cast<std::size_t>(rank)] = cut.largest_of_rank(rank);
  }
}

void PlacementSearch::find_samples(PlacementConfig& found) {
  const bool by_speed = found.batch == PlaceBy::speed;
  found.rank_samples = apportion(train_samples_, by_speed ? found.speed : batch_weights());
  const std::int64_t most = *std::max_element(found.rank_samples.begin(), found.rank_samples.end());
  const std::int64_t limit = found.most_samples.value_or(most);
  const auto works = [&](std::int64_t rounds) {
    set_rounds(found.rank_samples, rounds);
    return fits(find_counts());
  };
  std::int64_t low = std::min(most, std::max(found.fewest_rounds, (most - 1) / limit + 1));
  if (!works(low)) {
    std::int64_t high = most;  // one sample a round, whether that fits or not
    for (++low; low < high;) {
      const std::int64_t middle = low + (high - low) / 2;
      if (works(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    low = std::min(low, most);
  }
  found.rounds = low;
  set_rounds(found.rank_samples, low);
}

}  // namespace

bool goes_by_memory(const PlacementConfig& placement) {
  return placement.shards != PlaceBy::weights || placement.batch != PlaceBy::weights;
}

std::vector<std::int64_t> memory_per_rank(std::span<const std::int64_t> sizes, int world) {
  const auto ranks = static_cast<std::size_t>(world);
  require(sizes.size() == 1 || sizes.size() == ranks,
          "expected one size of memory, or {} (one per rank), got {}", world, sizes.size());
  if (sizes.size() == 1) return std::vector<std::int64_t>(ranks, sizes.front());
  return {sizes.begin(), sizes.end()};
}

void place_run(RunConfig& run, const Model& model, int world,
               std::span<const std::int64_t> memory) {
  run.placement.shard_counts.clear();
  run.placement.rank_samples.clear();
  if (!goes_by_memory(run.placement)) return;
  require(memory.size() == static_cast<std::size_t>(world),
          "expected the memory of {} ranks, got {}", world, memory.size());
  PlacementSearch search(run, model, world, memory);
  if (run.placement.batch != PlaceBy::weights) search.find_samples(run.placement);
  run.placement.shard_counts = search.find_counts();
}

}  // namespace sherd
