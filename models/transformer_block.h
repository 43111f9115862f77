#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kernels/activation.h"
#include "kernels/rope.h"
#include "models/layers.h"
#include "runtime/unit.h"

namespace sherd {

/// A block: attention and MLP, each added to the path around it, with a norm in front of each.
/// Names are those of parameters, without ".weight" and ".bias".
struct TransformerBlockSpec {
  std::string name;  ///< of the unit
  std::int64_t hidden_size = 0;
  std::int64_t inner_size = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  NormKind norm = NormKind::rms;
  float norm_epsilon = 0.0f;
  float dropout = 0.0f;  ///< of what the halves add
  bool causal = true;    ///< tokens see those before them, not all

  std::string attention_norm;
  LinearSpec qkv;
  std::optional<RopeSpec> rope = {};
  std::string query_norm = {};  ///< of rotated heads; empty: none, and none of the key heads
  std::string key_norm = {};
  LinearSpec attention_out;

  std::string mlp_norm;
  LinearSpec mlp_in;
  std::optional<Activation> activation = {};  ///< none: SwiGLU of the halves of what mlp_in makes
  LinearSpec mlp_out;
};

std::unique_ptr<Unit> make_transformer_block(const TransformerBlockSpec& spec);

/// The original's block (Vaswani et al. 2017): norms are behind the sums of halves and the paths
/// around them. `spec` names the norms, which are layer norms.
std::unique_ptr<Unit> make_post_norm_block(const TransformerBlockSpec& spec);

}  // namespace sherd
