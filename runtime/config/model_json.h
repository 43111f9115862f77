#pragma once

#include <string>
#include <vector>

#include "core/dtype.h"
#include "runtime/config/json.h"
#include "runtime/config/model_config.h"

namespace sherd {

/// Text of the config.json of a model folder, in the keys of transformers 4, which later versions
/// read too. `weights` is the dtype of the folder's tensors. For mlp it holds model_type and
/// layers.
std::string model_config_json(const ModelConfig& model, DType weights);

/// id2label of such a file: {"0": "first", "1": "second"}.
JsonValue id2label_json(const std::vector<std::string>& labels);

}  // namespace sherd
