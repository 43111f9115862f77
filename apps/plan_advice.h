#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/device_sizes.h"
#include "apps/run_plan.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// A run that was planned in place of one that does not fit.
struct Alternative {
  std::string change;  ///< what to change, as run file keys and --ranks
  std::int64_t peak_bytes = 0;
  bool fits = false;
};

/// Smallest change first: each single change of a key; when none fits, the fewest changes that
/// together do, each as mild as fits; then what `--fit` finds; then more ranks. The last one that
/// was tried stands for all of its kind that do not fit.
std::vector<Alternative> find_alternatives(const RunConfig& run, const DeviceMemory& memory);

/// Whether a plan fits, and what would make the run fit.
struct Verdict {
  bool fits = true;
  std::string problem;
  std::vector<Alternative> alternatives;
  std::string least;  ///< when none of them fits: what would do on every rank, with which changes
};
Verdict judge(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory);

/// The problem and the smallest change that helps, in a line.
std::string conclusion(const Verdict& verdict);

/// What is lacking when nothing that keeps model and step fits: the smallest change that would
/// help, or what memory would do, in a line.
std::string why_none_fits(const RunConfig& run, const DeviceMemory& memory);

}  // namespace sherd
