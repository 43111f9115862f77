#include "core/cuda/device_guard.h"

#include "core/cuda/check.h"
#include "core/error.h"

namespace sherd {

DeviceGuard::DeviceGuard(Device device) {
  require(device.kind == DeviceKind::cuda, "expected a CUDA device, got {}", name_of(device));
  SHERD_CHECK(cudaGetDevice(&before_));
  if (before_ != device.index) SHERD_CHECK(cudaSetDevice(device.index));
}

DeviceGuard::~DeviceGuard() { cudaSetDevice(before_); }

}  // namespace sherd
