#pragma once

#include <string>

#include "apps/run_plan.h"
#include "collectives/communicator.h"
#include "collectives/mpi.h"
#include "core/device.h"
#include "runtime/config/load.h"
#include "runtime/unit.h"

namespace sherd {

/// What a run takes, and its nodes as text.
struct PlacedRun {
  RunPlan plan;
  std::string nodes;
};

/// Collective: finds the counts of a run whose placement goes by memory, from what
/// `placement.memory` gives or the ranks' devices have free, and writes down in the settings what
/// follows. A run that takes more than is given, or more than devices or machines have free now,
/// ends here, on all ranks: throws ArgumentError with the smallest change that fits. Rank 0 gets
/// the plan.
PlacedRun place_on_ranks(LoadedConfig& config, const Model& model, Device device,
                         const MpiSession& session, Communicator& world);

}  // namespace sherd
