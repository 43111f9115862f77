#pragma once

#include <string>
#include <vector>

#include "apps/device_sizes.h"
#include "apps/run_source.h"

namespace sherd {

/// The text of a run's file with `changes` (key=JSON; null takes a key away), for ranks whose
/// devices hold `memory`, placed where it goes by memory.
std::string changed_run_file(const RunSource& source, const std::vector<std::string>& changes,
                             const DeviceMemory& memory);

}  // namespace sherd
