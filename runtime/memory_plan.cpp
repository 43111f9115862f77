#include "runtime/memory_plan.h"

#include <algorithm>
#include <array>
#include <climits>
#include <numeric>
#include <utility>

#include "core/buffer.h"

namespace sherd {
namespace {

bool overlap(const Region& a, const Region& b) {
  for (const Interval& x : a.live) {
    for (const Interval& y : b.live) {
      if (x.first <= y.last && y.first <= x.last) return true;
    }
  }
  return false;
}

std::vector<std::size_t> largest_first(std::span<const Region> regions,
                                       std::span<const std::int64_t> sizes) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].persistent && sizes[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

void place_persistent(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                      MemoryPlan& plan) {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (!regions[i].persistent) continue;
    plan.placements[i] = {plan.persistent_bytes, sizes[i]};
    plan.persistent_bytes += aligned(sizes[i]);
  }
}

/// A region that was placed. Its first and last position rule out most of those that live at other
/// times without a look at their intervals.
struct Placed {
  std::int64_t offset = 0;
  std::int64_t end = 0;
  int first = 0;  ///< position of its life, with all pauses
  int last = 0;
  const Region* region = nullptr;
};

/// Regions by offset, so that looking for a place is one walk that ends at the first that is free.
class PlacedRegions {
 public:
  explicit PlacedRegions(std::int64_t base) : base_(base) {}

  /// Returns where the region went: the lowest offset that is free during its life.
  std::int64_t place(const Region& region, std::int64_t bytes) {
    Placed own{base_, 0, INT_MAX, INT_MIN, &region};
    for (const Interval& interval : region.live) {
      own.first = std::min(own.first, interval.first);
      own.last = std::max(own.last, interval.last);
    }
    for (const Placed& other : placed_) {
      if (other.last < own.first || own.last < other.first) continue;
      if (own.offset >= other.end || !overlap(region, *other.region)) continue;
      if (own.offset + bytes <= other.offset) break;
      own.offset = other.end;
    }
    own.end = own.offset + bytes;
    const auto next =
        std::upper_bound(placed_.begin(), placed_.end(), own.offset,
                         [](std::int64_t offset, const Placed& p) { return offset < p.offset; });
    placed_.insert(next, own);
    return own.offset;
  }

 private:
  std::int64_t base_;
  std::vector<Placed> placed_;
};

void place_temporaries(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                       MemoryPlan& plan) {
  plan.arena_bytes = plan.persistent_bytes;
  PlacedRegions placed(plan.persistent_bytes);
  for (const std::size_t i : largest_first(regions, sizes)) {
    const std::int64_t bytes = aligned(sizes[i]);
    plan.placements[i] = {placed.place(regions[i], bytes), sizes[i]};
    plan.arena_bytes = std::max(plan.arena_bytes, plan.placements[i].offset + bytes);
  }
}

/// Live bytes per tag at one position.
using TagBytes = std::array<std::int64_t, kMemoryTags>;

std::int64_t sum_of(const TagBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

TagBytes fullest_position(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                          int positions) {
  std::vector<TagBytes> change(static_cast<std::size_t>(std::max(positions, 1)) + 1);
  const auto add = [&](int position, MemoryTag tag, std::int64_t bytes) {
    change[static_cast<std::size_t>(position)][static_cast<std::size_t>(tag)] += bytes;
  };
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Region& region = regions[i];
    if (region.persistent) {
      add(0, region.tag, aligned(sizes[i]));
      continue;
    }
    for (const Interval& interval : region.live) {
      add(interval.first, region.tag, aligned(sizes[i]));
      add(interval.last + 1, region.tag, -aligned(sizes[i]));
    }
  }
  TagBytes live{};
  TagBytes fullest{};
  for (std::size_t p = 0; p + 1 < change.size(); ++p) {
    for (std::size_t tag = 0; tag < live.size(); ++tag) live[tag] += change[p][tag];
    if (p == 0 || sum_of(live) > sum_of(fullest)) fullest = live;
  }
  return fullest;
}

}  // namespace

std::string_view name_of(MemoryTag tag) {
  switch (tag) {
    case MemoryTag::parameters:
      return "parameters";
    case MemoryTag::gradients:
      return "gradients";
    case MemoryTag::optimizer:
      return "optimizer";
    case MemoryTag::activations:
      return "activations";
    case MemoryTag::gather:
      return "gather";
    case MemoryTag::workspace:
      return "workspace";
  }
  return "?";
}

MemoryPlan pack(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                int positions) {
  MemoryPlan plan;
  plan.placements.resize(regions.size());
  place_persistent(regions, sizes, plan);
  place_temporaries(regions, sizes, plan);
  const TagBytes fullest = fullest_position(regions, sizes, positions);
  std::copy(fullest.begin(), fullest.end(), plan.bytes_by_tag);
  plan.slack_bytes = plan.arena_bytes - sum_of(fullest);
  return plan;
}

}  // namespace sherd
