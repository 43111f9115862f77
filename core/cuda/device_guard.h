#pragma once

#include "core/device.h"

namespace sherd {

/// Makes `device` current for CUDA calls of this thread, and what was current again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int before_ = 0;
};

}  // namespace sherd
