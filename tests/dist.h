#pragma once

#include <memory>

#include "collectives/mpi.h"
#include "collectives/shared_gpus.h"
#include "core/cuda_backend.h"

namespace sherd::test {

/// The MPI session of this test binary; tests/dist_main.cpp sets it before the first case.
MpiSession& mpi_session();

/// One GPU a rank, or where there are fewer a part of one, for cases that are tagged [gpu].
inline Device own_gpu() {
  const int per_gpu = ranks_per_gpu(mpi_session().local_size(), cuda_device_count());
  return {DeviceKind::cuda, mpi_session().local_rank() / per_gpu};
}

/// Collective: a new communicator of all ranks that waits for a late rank no longer than a test
/// may. Make it inside the case, so that an assertion that fails on one rank destroys it there:
/// that tells the others, and their collectives fail at once.
std::unique_ptr<Communicator> make_world(MpiOptions options = {.timeout_seconds = 60});

/// Collective: returns when all ranks have come here. For cases that play with time.
void meet_all_ranks();

}  // namespace sherd::test
