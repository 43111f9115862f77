#pragma once

#include <string>

#include "core/dtype.h"
#include "runtime/config/model_config.h"

namespace sherd {

/// Text of the config.json of a model folder, in the keys of transformers 4, which later versions
/// read too. `weights` is the dtype of the folder's tensors. For mlp it holds model_type and
/// layers.
std::string model_config_json(const ModelConfig& model, DType weights);

}  // namespace sherd
