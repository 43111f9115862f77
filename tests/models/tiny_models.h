#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config/model_config.h"
#include "tests/models/unit_runner.h"

namespace sherd::testing {

/// Every kind of block, in sizes nobody divides: "mlp", "gpt2", "gpt2 untied", "llama", "qwen2",
/// "qwen3", "bert".
std::vector<std::string> tiny_model_names();
ModelConfig tiny_model(const std::string& name);

/// Fresh inputs and labels for a model of `config`, some labels ignored; for bert with padding and
/// types of tokens.
HostBatch random_batch(const ModelConfig& config, std::int64_t samples, std::int64_t sequence,
                       std::uint64_t seed);

}  // namespace sherd::testing
