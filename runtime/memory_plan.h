#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// What a region is for, as memory tables show it.
enum class MemoryTag { parameters, gradients, optimizer, activations, gather, workspace };
inline constexpr int kMemoryTags = 6;
std::string_view name_of(MemoryTag tag);

/// Positions [first, last] of the compute order of one micro-batch.
struct Interval {
  int first = 0;
  int last = 0;
};

/// A named piece of the arena. Its size is `fixed_bytes`, plus `bytes_per_element` for each element
/// of this rank's shard of buffer `shard_of` (when that is not -1).
struct Region {
  std::string name;
  MemoryTag tag = MemoryTag::workspace;
  std::int64_t fixed_bytes = 0;
  int shard_of = -1;
  int bytes_per_element = 0;
  bool persistent = false;     ///< lives through the whole run; otherwise only during `live`
  std::vector<Interval> live;  ///< disjoint, when not persistent
};

/// A region's place in the arena.
struct Placement {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// One arena: persistent regions first, in order, then the others packed by their lifetimes, so
/// that plans with the same persistent regions agree about where those lie.
struct MemoryPlan {
  std::vector<Placement> placements;  ///< per region
  std::int64_t arena_bytes = 0;       ///< the peak: what is taken, once, before the first step
  std::int64_t persistent_bytes = 0;
  /// At the fullest position, by tag, padding to alignment included; they add up to at most
  /// arena_bytes.
  std::int64_t bytes_by_tag[kMemoryTags] = {};
  /// arena_bytes less the sum above: what packing could not close.
  std::int64_t slack_bytes = 0;
};

/// Greedy interval packing, largest first, at the lowest offset that is free during the region's
/// life. `sizes` are the regions' bytes on this rank; `positions` is the length of the compute
/// order.
MemoryPlan pack(std::span<const Region> regions, std::span<const std::int64_t> sizes,
                int positions);

}  // namespace sherd
