#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/config/run_config.h"
#include "runtime/unit.h"

namespace sherd {

/// Whether the run's shards or batch go by what ranks may take.
bool goes_by_memory(const PlacementConfig& placement);

/// `sizes` for each of `world` ranks: one for all, or one each. Throws ArgumentError otherwise.
std::vector<std::int64_t> memory_per_rank(std::span<const std::int64_t> sizes, int world);

/// Finds how many elements each rank holds and how many samples it has, where the run goes by
/// memory: `run.placement` then has counts such that no rank takes more than its `memory`, a size
/// in bytes for each rank. A pure function, the same on all ranks. Shards of a group's rank i are
/// those of rank i of every other group, so the least of their memories counts.
///
/// Shards get what activations, workspace and gathered buffers leave. A batch by memory is dealt
/// in proportion to what ranks have left before that; it is cut into the fewest rounds that fit.
/// Where nothing fits, ranks lack about as much as each other: whoever plans the run sees how much.
/// Throws ArgumentError when shards go by memory and the stage cuts none.
void place_run(RunConfig& run, const Model& model, int world, std::span<const std::int64_t> memory);

}  // namespace sherd
