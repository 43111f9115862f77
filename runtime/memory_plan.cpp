#include "runtime/memory_plan.h"

#include <algorithm>
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

std::int64_t lowest_free_offset(const std::vector<Placement>& busy_by_offset, std::int64_t base,
                                std::int64_t bytes) {
  std::int64_t offset = base;
  for (const Placement& busy : busy_by_offset) {
    if (offset + bytes <= busy.offset) break;
    offset = std::max(offset, busy.offset + busy.bytes);
  }
  return offset;
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

void place_temporaries(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                       MemoryPlan& plan) {
  plan.arena_bytes = plan.persistent_bytes;
  std::vector<std::size_t> placed;
  std::vector<Placement> busy;
  for (const std::size_t i : largest_first(regions, sizes)) {
    busy.clear();
    for (const std::size_t j : placed) {
      if (overlap(regions[i], regions[j])) {
        busy.push_back({plan.placements[j].offset, aligned(sizes[j])});
      }
    }
    std::sort(busy.begin(), busy.end(),
              [](const Placement& a, const Placement& b) { return a.offset < b.offset; });
    const std::int64_t bytes = aligned(sizes[i]);
    plan.placements[i] = {lowest_free_offset(busy, plan.persistent_bytes, bytes), sizes[i]};
    plan.arena_bytes = std::max(plan.arena_bytes, plan.placements[i].offset + bytes);
    placed.push_back(i);
  }
}

/// Live bytes per tag at one position.
using TagBytes = std::vector<std::int64_t>;

TagBytes fullest_position(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                          int positions) {
  std::vector<TagBytes> live(static_cast<std::size_t>(std::max(positions, 1)),
                             TagBytes(kMemoryTags, 0));
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto tag = static_cast<std::size_t>(regions[i].tag);
    if (regions[i].persistent) {
      for (TagBytes& at : live) at[tag] += aligned(sizes[i]);
      continue;
    }
    for (const Interval& interval : regions[i].live) {
      for (int p = interval.first; p <= interval.last; ++p) {
        live[static_cast<std::size_t>(p)][tag] += aligned(sizes[i]);
      }
    }
  }
  return *std::max_element(live.begin(), live.end(), [](const TagBytes& a, const TagBytes& b) {
    return std::accumulate(a.begin(), a.end(), std::int64_t{0}) <
           std::accumulate(b.begin(), b.end(), std::int64_t{0});
  });
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
  plan.slack_bytes =
      plan.arena_bytes - std::accumulate(fullest.begin(), fullest.end(), std::int64_t{0});
  return plan;
}

}  // namespace sherd
