#include "models/gpt2.h"

#include <cmath>
#include <string>

#include "models/causal_lm_head.h"
#include "models/token_embedding.h"
#include "models/transformer_block.h"

namespace sherd {
namespace {

LinearSpec conv1d(const std::string& name, std::int64_t in, std::int64_t out, float init_std) {
  LinearSpec spec = normal_linear(name, in, out, true, init_std);
  spec.layout = WeightLayout::in_out;
  return spec;
}

/// Projections onto the residual path start smaller, by the number of them.
float residual_std(const ModelConfig& config) {
  return config.initializer_range / std::sqrt(2.0f * static_cast<float>(config.num_hidden_layers));
}

TransformerBlockSpec block(const ModelConfig& config, int layer) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const float init_std = config.initializer_range;
  const std::string prefix = "transformer.h." + std::to_string(layer) + ".";
  return {.name = "block." + std::to_string(layer),
          .hidden_size = hidden,
          .inner_size = inner,
          .heads = config.num_attention_heads,
          .kv_heads = config.num_attention_heads,
          .head_dim = static_cast<int>(hidden / config.num_attention_heads),
          .norm = NormKind::layer,
          .norm_epsilon = config.norm_epsilon,
          .dropout = config.residual_dropout,
          .attention_norm = prefix + "ln_1",
          .qkv = conv1d(prefix + "attn.c_attn", hidden, 3 * hidden, init_std),
          .attention_out = conv1d(prefix + "attn.c_proj", hidden, hidden, residual_std(config)),
          .mlp_norm = prefix + "ln_2",
          .mlp_in = conv1d(prefix + "mlp.c_fc", hidden, inner, init_std),
          .activation = config.activation,
          .mlp_out = conv1d(prefix + "mlp.c_proj", inner, hidden, residual_std(config))};
}

}  // namespace

std::vector<std::unique_ptr<Unit>> make_gpt2_units(const ModelConfig& config) {
  const std::string table = "transformer.wte.weight";
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(make_token_embedding({.table_name = table,
                                        .vocab_size = config.vocab_size,
                                        .hidden_size = config.hidden_size,
                                        .positions_name = "transformer.wpe.weight",
                                        .max_positions = config.max_position_embeddings,
                                        .init_std = config.initializer_range,
                                        .dropout = config.embedding_dropout}));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    units.push_back(make_transformer_block(block(config, layer)));
  }
  units.push_back(make_causal_lm_head({.norm = NormKind::layer,
                                       .norm_name = "transformer.ln_f",
                                       .norm_epsilon = config.norm_epsilon,
                                       .hidden_size = config.hidden_size,
                                       .vocab_size = config.vocab_size,
                                       .tied_to = config.tie_word_embeddings ? table : "",
                                       .init_std = config.initializer_range}));
  return units;
}

}  // namespace sherd
