#pragma once

#include <memory>
#include <vector>

#include "runtime/config/model_config.h"
#include "runtime/unit.h"

namespace sherd {

/// Llama 2 and 3 (Touvron et al. 2023), Qwen2 (bias on q, k, v) and Qwen3 (norms on q and k heads):
/// RMS norm, rotary grouped-query attention, SwiGLU. Units "embedding", "block.<i>" …, "head";
/// parameters carry Hugging Face's names, and q_proj, k_proj, v_proj and gate_proj, up_proj are
/// parts of fused ones.
std::vector<std::unique_ptr<Unit>> make_llama_units(const ModelConfig& config);

}  // namespace sherd
