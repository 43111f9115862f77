#include "models/llama.h"

#include <string>
#include <utility>

#include "models/causal_lm_head.h"
#include "models/token_embedding.h"
#include "models/transformer_block.h"

namespace sherd {
namespace {

struct Dimensions {
  explicit Dimensions(const ModelConfig& config)
      : hidden(config.hidden_size),
        inner(config.intermediate_size),
        query_width(std::int64_t{config.num_attention_heads} * config.head_dim),
        kv_width(std::int64_t{config.num_key_value_heads} * config.head_dim) {}

  std::int64_t hidden;
  std::int64_t inner;
  std::int64_t query_width;
  std::int64_t kv_width;
};

LinearSpec projection(const ModelConfig& config, const std::string& name, std::int64_t in,
                      std::int64_t out, bool bias = false, std::vector<ParameterPart> parts = {}) {
  return normal_linear(name, in, out, bias, config.initializer_range, std::move(parts));
}

LinearSpec qkv_projection(const ModelConfig& config, const std::string& prefix) {
  const Dimensions d(config);
  return projection(config, prefix + "qkv_proj", d.hidden, d.query_width + 2 * d.kv_width,
                    config.attention_bias,
                    {{prefix + "q_proj", d.query_width},
                     {prefix + "k_proj", d.kv_width},
                     {prefix + "v_proj", d.kv_width}});
}

LinearSpec gate_up_projection(const ModelConfig& config, const std::string& prefix) {
  const Dimensions d(config);
  return projection(config, prefix + "gate_up_proj", d.hidden, 2 * d.inner, false,
                    {{prefix + "gate_proj", d.inner}, {prefix + "up_proj", d.inner}});
}

TransformerBlockSpec block(const ModelConfig& config, int layer) {
  const Dimensions d(config);
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  return {.name = "block." + std::to_string(layer),
          .hidden_size = d.hidden,
          .inner_size = d.inner,
          .heads = config.num_attention_heads,
          .kv_heads = config.num_key_value_heads,
          .head_dim = config.head_dim,
          .norm = NormKind::rms,
          .norm_epsilon = config.norm_epsilon,
          .attention_norm = prefix + "input_layernorm",
          .qkv = qkv_projection(config, attention),
          .rope = config.rope,
          .query_norm = config.qk_norm ? attention + "q_norm" : "",
          .key_norm = config.qk_norm ? attention + "k_norm" : "",
          .attention_out = projection(config, attention + "o_proj", d.query_width, d.hidden),
          .mlp_norm = prefix + "post_attention_layernorm",
          .mlp_in = gate_up_projection(config, mlp),
          .mlp_out = projection(config, mlp + "down_proj", d.inner, d.hidden)};
}

}  // namespace

std::vector<std::unique_ptr<Unit>> make_llama_units(const ModelConfig& config) {
  const std::string table = "model.embed_tokens.weight";
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(make_token_embedding({.table_name = table,
                                        .vocab_size = config.vocab_size,
                                        .hidden_size = config.hidden_size,
                                        .init_std = config.initializer_range}));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    units.push_back(make_transformer_block(block(config, layer)));
  }
  units.push_back(make_causal_lm_head({.norm = NormKind::rms,
                                       .norm_name = "model.norm",
                                       .norm_epsilon = config.norm_epsilon,
                                       .hidden_size = config.hidden_size,
                                       .vocab_size = config.vocab_size,
                                       .tied_to = config.tie_word_embeddings ? table : "",
                                       .init_std = config.initializer_range}));
  return units;
}

}  // namespace sherd
