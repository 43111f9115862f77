#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/device_sizes.h"
#include "apps/rates.h"
#include "apps/run_plan.h"
#include "runtime/config/load.h"

namespace sherd {

/// A run that was tried: the settings that make it, and what it would take.
struct Fit {
  std::string description;           ///< "stage 3, micro-batch 4, prefetch 1"
  std::vector<std::string> changes;  ///< key=JSON
  RunPlan plan;
  std::int64_t headroom_bytes = 0;  ///< of the rank that has least left
  double tokens_per_s = 0.0;
};

struct FitSearch {
  std::vector<Fit> best;  ///< fastest first, a few
  int tried = 0;
};

/// A run with everything that saves memory, and what it takes.
struct SmallestRun {
  RunConfig run;
  RunPlan plan;
  std::string description;
  std::int64_t lacking_bytes = 0;  ///< of all ranks; 0: it fits
};
SmallestRun smallest_run(const RunConfig& run, const DeviceMemory& memory);

/// The fastest run that fits, by the usual rates; nothing when none does.
std::optional<Fit> find_any_fit(const RunConfig& run, const DeviceMemory& memory);

/// Searches stage, group size, placement, micro-batch, recompute, prefetch, bursts and reshard for
/// the runs with the same samples a step that are predicted to be fastest and take no more than
/// `memory`. `rates` are those of all ranks, or of each: then samples are dealt by speed too. First
/// each combination, at stage 3 also gathered late where that saves running again, then depths and
/// the rest around the best.
FitSearch find_fits(const RunConfig& run, const DeviceMemory& memory, std::span<const Rates> rates);

}  // namespace sherd
