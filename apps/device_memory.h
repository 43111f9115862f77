#pragma once

#include <cstdint>
#include <string>

#include "core/cuda_backend.h"

namespace sherd {

/// "4.1 GiB of 139.8 GiB in use: 3.2 GiB planned; 921.0 MiB beside it: …": how much of a device's
/// memory a run takes, `planned_bytes` of it from its plan. Everything that uses the device counts.
std::string device_memory_text(const CudaDeviceInfo& device, std::int64_t planned_bytes);

}  // namespace sherd
