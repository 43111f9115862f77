#pragma once

#include <memory>

#include "collectives/nccl.h"
#include "core/device.h"
#include "tests/dist.h"

namespace sherd::test {

/// One GPU a rank.
inline Device own_gpu() { return {DeviceKind::cuda, mpi_session().local_rank()}; }

/// Collective: GPUs of the ranks of `control`.
inline std::unique_ptr<Communicator> make_gpu_world(Communicator& control) {
  return make_nccl_communicator(control, own_gpu(), "test");
}

}  // namespace sherd::test
