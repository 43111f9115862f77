#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/device_sizes.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// Makes a change to a run and says how, as a run file's key; nothing where it would change
/// nothing, or contradict a change made before.
using Edit = std::function<std::optional<std::string>(RunConfig&)>;

/// One thing about a run that saves memory: its edits, the mildest first.
using Lever = std::vector<Edit>;

/// All that is left to pull in a run of ranks that have `memory`, in the order in which people
/// would rather do it. The step keeps its samples, and the model its size.
std::vector<Lever> levers_of(const RunConfig& run, const DeviceMemory& memory);

/// Of them, those that save most on ranks whose devices are all alike, whatever they hold.
std::vector<Lever> even_levers_of(const RunConfig& run, int world);

}  // namespace sherd
