#pragma once

#include <string>

namespace sherd {

/// Why a path is no folder of a model, what it is, and what to give instead: "\"runs/demo\" is the
/// folder of a run; its model is in \"runs/demo/model\": give that". Empty when there is a
/// config.json that may be a model's. Throws ArgumentError when that is no JSON.
std::string why_no_model_folder(const std::string& path);

}  // namespace sherd
