#pragma once

#include "apps/plan.h"
#include "runtime/config/load.h"

namespace sherd {

/// `sherd plan --scaling`: prints the largest models of the run's shape by ranks, memory and stage,
/// and draws them where that is asked for.
ExitCode scaling_command(const PlanCommand& command, const RunConfig& run);

}  // namespace sherd
