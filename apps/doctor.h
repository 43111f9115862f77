#pragma once

#include "collectives/mpi.h"
#include "core/error.h"

namespace sherd {

/// `sherd doctor`: what this machine and launch offer, and what stands in the way. Alone or under
/// mpirun; every finding that will cost speed or fail later says what to do.
ExitCode doctor_command(MpiSession& session);

}  // namespace sherd
