#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/run_plan.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// What the ranks' devices hold: one size for all ranks, or one for each.
class DeviceMemory {
 public:
  /// Throws ArgumentError unless there is one size, or one per rank.
  DeviceMemory(std::vector<std::int64_t> bytes, int world);

  std::int64_t of_rank(int rank) const;
  bool holds(const RunPlan& plan) const;
  /// The rank that lacks most; only of a plan that is not held.
  int shortest_rank(const RunPlan& plan) const;
  bool is_same_for_all() const { return bytes_.size() == 1; }
  /// Of each of `world` ranks.
  std::vector<std::int64_t> per_rank(int world) const;

 private:
  std::vector<std::int64_t> bytes_;
};

/// A run that was planned in place of one that does not fit.
struct Alternative {
  std::string change;  ///< what to change, as run file keys and --ranks
  std::int64_t peak_bytes = 0;
  bool fits = false;
};

/// Smallest change first: each single change, then changes together until they fit or there are no
/// more to make.
std::vector<Alternative> find_alternatives(const RunConfig& run, int world,
                                           const DeviceMemory& memory);

/// Whether a plan fits, and what would make the run fit.
struct Verdict {
  bool fits = true;
  std::string problem;
  std::vector<Alternative> alternatives;
};
Verdict judge(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory);

/// The problem and the smallest change that helps, in a line.
std::string conclusion(const Verdict& verdict);

}  // namespace sherd
