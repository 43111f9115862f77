#pragma once

#include <string>

#include "apps/run_source.h"
#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

struct TrainCommand {
  RunSource source;
  std::string resume;  ///< as given; "": start anew
};

/// `sherd train`, on every rank of the session.
ExitCode train_command(const TrainCommand& command, MpiSession& session);

}  // namespace sherd
