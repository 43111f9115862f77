#pragma once

#include "apps/fit.h"
#include "apps/plan.h"
#include "apps/plan_target.h"

namespace sherd {

/// `sherd plan --fit`: prints the fastest runs that fit, and writes the first of them as a run file
/// where that is asked for. Throws ArgumentError, with the smallest change that would help, when
/// none fits.
ExitCode fit_command(const PlanCommand& command, const LoadedConfig& config,
                     const DeviceMemory& memory, const PlanTarget& target);

}  // namespace sherd
