#pragma once

#include "apps/plan.h"
#include "apps/plan_target.h"
#include "runtime/config/load.h"

namespace sherd {

/// `sherd plan --scaling`: prints the largest models of the run's shape by ranks, memory and stage,
/// and draws them where that is asked for. With `command.write`, finds the one for all ranks at the
/// run's own stage alone, and writes its run file.
/// `sizes` of devices are for each rank, or of worlds of equal ranks: see are_of_ranks.
ExitCode scaling_command(const PlanCommand& command, const RunConfig& run,
                         const std::vector<std::int64_t>& sizes, const PlanTarget& target);

}  // namespace sherd
