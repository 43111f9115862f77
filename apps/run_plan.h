#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/batch.h"
#include "runtime/config/run_config.h"
#include "runtime/engine.h"
#include "runtime/memory_plan.h"
#include "runtime/plan.h"
#include "runtime/step_time.h"

namespace sherd {

/// What each of some ranks takes, the same for all of them.
struct RankNeeds {
  std::vector<int> ranks;
  /// By MemoryTag, at the fullest moment; they add up to peak_bytes. Workspace includes the gaps
  /// that packing leaves.
  std::array<std::int64_t, kMemoryTags> bytes{};
  std::int64_t gap_bytes = 0;
  std::int64_t peak_bytes = 0;
  Traffic traffic;
};

/// A run as its engine will plan it, made and verified without ranks, data or memory.
struct RunPlan {
  std::string model;
  int world = 1;
  PlanOptions options;
  MicroBatchCut batch;
  BatchShape largest_micro_batch;  ///< of any rank
  std::vector<double> held;        ///< per rank of a group: the part of the states it holds at rest
  std::int64_t parameters = 0;
  std::vector<RankNeeds> needs;  ///< ranks with the same needs together, by their first rank
  std::int64_t node_count = 0;
  std::string hash;
  StepTime time;  ///< where rates were given

  const RankNeeds& needs_of(int rank) const;
  /// Of the rank that needs most.
  std::int64_t peak_bytes() const;
};

/// What else to find out, each where it is given.
struct PlanExtras {
  std::string* nodes = nullptr;    ///< receives the list of nodes
  std::span<const Rates> rates{};  ///< to predict the time of a step: of all ranks, or of each
};

/// Plans a run that was resolved, and placed where it goes by memory, for `world` ranks. Throws
/// ArgumentError.
RunPlan plan_run(const RunConfig& run, int world, const PlanExtras& extras = {});

}  // namespace sherd
