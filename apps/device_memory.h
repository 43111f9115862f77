#pragma once

#include <cstdint>
#include <string>

#include "core/cuda_backend.h"
#include "core/device.h"

namespace sherd {

/// "4.1 GiB of 139.8 GiB in use: 3.2 GiB planned; 921.0 MiB beside it: …": how much of a device's
/// memory a run takes, `planned_bytes` of it from its plan. Everything that uses the device counts.
std::string device_memory_text(const CudaDeviceInfo& device, std::int64_t planned_bytes);

/// What a rank's arena may take of a device.
struct UsableMemory {
  std::int64_t free_bytes = 0;     ///< now, for this rank
  std::int64_t reserve_bytes = 0;  ///< of them, for what is loaded and taken beside the arena
  std::string source;              ///< whose they are and what the reserve is for, for people

  std::int64_t bytes() const { return free_bytes - reserve_bytes; }
};

/// Of a GPU whose driver context exists already, as it does once its memory was asked for; `ranks`
/// of the run, since communicators take more when there are several.
UsableMemory usable_memory(const CudaDeviceInfo& device, int ranks);
/// What a run of so many ranks leaves to everything beside its plan of a GPU whose size is given:
/// to the driver's context too, which memory that is read as free is already without.
std::int64_t gpu_reserve(int ranks);
/// Of this machine, which `local_ranks` ranks share.
UsableMemory usable_host_memory(std::int64_t available_bytes, int local_ranks);

/// Of the device that one of `ranks` ranks here would train on, now; of GPUs, the one that has
/// least, and where there are fewer GPUs than ranks a rank's part of it. Throws ArgumentError when
/// there is no such device.
UsableMemory usable_memory_here(DeviceKind kind, int ranks);

}  // namespace sherd
