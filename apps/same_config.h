#pragma once

#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "runtime/config/settings.h"
#include "runtime/data/training_data.h"

namespace sherd {

/// "rank 2 has steps 50 (run.json:3:12), rank 0 has 100 (default)" for the first key in which a
/// rank's resolved values differ from rank 0's; "" when none does. `ranks` holds what
/// `settings_text` makes, by rank.
std::string find_difference(const std::vector<std::string>& ranks);
std::string settings_text(const Settings& settings);

/// Collective: throws SharedError on all ranks unless all have resolved the same values.
void require_same_settings(Communicator& world, const Settings& settings);

/// Collective: throws SharedError on all ranks, naming one, unless all have found as much data and
/// read the same from it, as far as data_fingerprint looks.
void require_same_data(Communicator& world, const TrainingData& data);

}  // namespace sherd
