#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/gpu.h"
#include "collectives/mpi.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// Collective: the device this rank trains on. `automatic` means GPUs where every rank has one of
/// its own, or may share, else CPUs on all. Throws ArgumentError on all ranks when `cuda` asks for
/// GPUs that are not there, and for two ranks on one GPU unless `share_gpus`.
Device choose_device(DeviceChoice wanted, bool share_gpus, const MpiSession& session,
                     Communicator& world);

/// The same for a process that is no rank: the first GPU, or CPUs.
Device first_device(DeviceChoice wanted);

/// What exact sums can't promise on GPUs of these models, by rank; empty where all are of one.
std::string exact_on_models(const std::vector<std::string>& models);
/// Collective: that of the ranks' devices; empty on CPUs.
std::string exact_on_devices(Device device, Communicator& world);

/// For communicators between GPUs of the ranks of `session`: what ends the job when nothing else
/// does.
GpuOptions gpu_options(MpiSession& session);

/// Collective: a communicator on `device` of the same ranks as `world`; null for CPUs, where
/// `world` itself serves.
std::unique_ptr<Communicator> device_communicator(Device device, Communicator& world,
                                                  MpiSession& session, double timeout_seconds);

}  // namespace sherd
