#pragma once

#include <string>

#include "runtime/config/model_config.h"
#include "runtime/engine.h"

namespace sherd {

/// Collective: rank 0 writes a Hugging Face folder, config.json and model.safetensors, with the
/// engine's parameters in the compute dtype; one buffer of the layout is in memory at a time. The
/// bytes depend on nothing but the parameters. Each file appears when it is complete.
void write_model_folder(Engine& engine, const ModelConfig& config, const std::string& folder,
                        int rank);

}  // namespace sherd
