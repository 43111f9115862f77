#pragma once

#include <memory>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// A stack of Linear layers with ReLU between them and cross-entropy of the last one's outputs,
/// from `config.layers` = [features, hidden sizes …, classes]. One unit, "linear.<i>", for each
/// Linear; the last makes the losses. Parameters are named as in PyTorch's Sequential(Linear, ReLU,
/// Linear, …): "0.weight", "0.bias", "2.weight", … and start as PyTorch's Linear does.
std::vector<std::unique_ptr<Unit>> make_mlp_units(const ModelConfig& config);

}  // namespace sherd
