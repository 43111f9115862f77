#pragma once

#include <string>

namespace sherd {

enum class DeviceKind : unsigned char { cpu, cuda };

/// Where bytes live and kernels run. `index` is the CUDA ordinal, 0 on CPUs.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  bool is_cpu() const { return kind == DeviceKind::cpu; }
  bool operator==(const Device&) const = default;
};

inline std::string name_of(Device device) {
  return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace sherd
