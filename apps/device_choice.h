#pragma once

#include <memory>

#include "collectives/communicator.h"
#include "collectives/mpi.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// Collective: the device this rank trains on. `automatic` means GPUs where every rank has one of
/// its own, else CPUs on all. Throws ArgumentError when `cuda` asks for GPUs that are not there:
/// two ranks on one GPU are refused.
Device choose_device(DeviceChoice wanted, const MpiSession& session, Communicator& world);

/// Collective: a communicator on `device` of the same ranks as `world`; null for CPUs, where
/// `world` itself serves.
std::unique_ptr<Communicator> device_communicator(Device device, Communicator& world,
                                                  MpiSession& session);

}  // namespace sherd
