#pragma once

#include <memory>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, Conv1D weights [in, out]. Units
/// "embedding", "block.<i>" …, "head"; parameters carry the names of Hugging Face's
/// GPT2LMHeadModel.
std::vector<std::unique_ptr<Unit>> make_gpt2_units(const ModelConfig& config);

}  // namespace sherd
