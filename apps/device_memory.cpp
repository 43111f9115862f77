#include "apps/device_memory.h"

#include <fmt/format.h>

#include "apps/quantity.h"

namespace sherd {

std::string device_memory_text(const CudaDeviceInfo& device, std::int64_t planned_bytes) {
  const std::int64_t used = device.total_bytes - device.free_bytes;
  return fmt::format(
      "{} of {} in use: {} planned; {} beside it: driver, NCCL, cuBLASLt, cuDNN, other programs",
      bytes_text(used), bytes_text(device.total_bytes), bytes_text(planned_bytes),
      bytes_text(used - planned_bytes));
}

}  // namespace sherd
