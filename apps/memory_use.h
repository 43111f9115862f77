#pragma once

#include <string>

#include "collectives/communicator.h"
#include "core/device.h"
#include "runtime/engine.h"

namespace sherd {

/// Collective: what each rank's run takes of memory, as a JSON list by rank, for memory.json of the
/// run's folder: what was planned and what was taken from the device for it, the most that the
/// process had resident, and on GPUs what of the device is in use now, by everything.
std::string memory_use_json(Communicator& world, const Engine& engine, Device device);

}  // namespace sherd
