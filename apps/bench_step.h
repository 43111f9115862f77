#pragma once

#include <string>
#include <vector>

#include "apps/run_source.h"
#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

/// `sherd bench step`: one run against variants of it, in turns within one process, so that a
/// machine that speeds up or slows down does so for all of them.
struct BenchStepCommand {
  RunSource source;
  /// Each a list of overrides between blanks: "zero_optimization.stage=0 reduction=exact".
  std::vector<std::string> against;
  int rounds = 7;           ///< turns
  int steps_per_round = 3;  ///< counted steps a turn, after one that is not
};

ExitCode bench_step_command(const BenchStepCommand& command, MpiSession& session);

}  // namespace sherd
