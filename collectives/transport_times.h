#pragma once

#include <vector>

#include "collectives/gpu.h"
#include "collectives/nccl_communicator.h"

namespace sherd {

/// Times NCCL and peer copies at sizes from small to large; the same result on all ranks.
/// Collective; `control` are the hosts of `nccl`, and all can read each other's memory.
std::vector<TransportTime> time_transports(Communicator& control, NcclCommunicator& nccl);

}  // namespace sherd
