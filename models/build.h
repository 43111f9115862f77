#pragma once

#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// The model that a configuration describes. Throws ArgumentError, naming the key, for what is not
/// supported.
Model build_model(const ModelConfig& config);

}  // namespace sherd
