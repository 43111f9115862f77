#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/device_memory.h"
#include "apps/device_sizes.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// The word in place of a size of `--device-memory`: what a rank may take here, now.
inline constexpr const char* kMemoryHere = "auto";

/// The device that a plan is for, and what was read of its memory.
struct PlanTarget {
  DeviceChoice device = DeviceChoice::cpu;
  std::string reason;                  ///< why it is that one, for people
  std::optional<UsableMemory> memory;  ///< where it was not given as a size

  DeviceKind kind() const {
    return device == DeviceChoice::cuda ? DeviceKind::cuda : DeviceKind::cpu;
  }
};

/// The device that training takes when all `ranks` run on a machine of `gpus` GPUs: what is wanted,
/// and where that is left open, GPUs if each rank gets one.
PlanTarget find_target(DeviceChoice wanted, int ranks, int gpus);

/// "device  GPUs: as asked for", and a line for the memory.
std::string target_lines(const PlanTarget& target);
/// The same, and what of sizes that were given is reserved.
std::string target_lines(const PlanTarget& target, const DeviceMemory& memory);
/// `device`, and `usable_memory` where memory was read.
nlohmann::ordered_json target_json(const PlanTarget& target);

}  // namespace sherd
