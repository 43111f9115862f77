#include "models/bert.h"

#include <string>
#include <utility>

#include "models/bert_embedding.h"
#include "models/classification_head.h"
#include "models/transformer_block.h"

namespace sherd {
namespace {

LinearSpec dense(const ModelConfig& config, const std::string& name, std::int64_t in,
                 std::int64_t out, std::vector<ParameterPart> parts = {}) {
  return normal_linear(name, in, out, true, config.initializer_range, std::move(parts));
}

LinearSpec qkv(const ModelConfig& config, const std::string& prefix) {
  const std::int64_t hidden = config.hidden_size;
  return dense(config, prefix + "qkv", hidden, 3 * hidden,
               {{prefix + "query", hidden}, {prefix + "key", hidden}, {prefix + "value", hidden}});
}

TransformerBlockSpec block(const ModelConfig& config, int layer) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::string prefix = "bert.encoder.layer." + std::to_string(layer) + ".";
  return {.name = "block." + std::to_string(layer),
          .hidden_size = hidden,
          .inner_size = inner,
          .heads = config.num_attention_heads,
          .kv_heads = config.num_attention_heads,
          .head_dim = static_cast<int>(hidden / config.num_attention_heads),
          .norm = NormKind::layer,
          .norm_epsilon = config.norm_epsilon,
          .dropout = config.residual_dropout,
          .causal = false,
          .attention_norm = prefix + "attention.output.LayerNorm",
          .qkv = qkv(config, prefix + "attention.self."),
          .attention_out = dense(config, prefix + "attention.output.dense", hidden, hidden),
          .mlp_norm = prefix + "output.LayerNorm",
          .mlp_in = dense(config, prefix + "intermediate.dense", hidden, inner),
          .activation = config.activation,
          .mlp_out = dense(config, prefix + "output.dense", inner, hidden)};
}

}  // namespace

std::vector<std::unique_ptr<Unit>> make_bert_units(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  std::vector<std::unique_ptr<Unit>> units;
  units.push_back(make_bert_embedding({.prefix = "bert.embeddings.",
                                       .vocab_size = config.vocab_size,
                                       .hidden_size = hidden,
                                       .max_positions = config.max_position_embeddings,
                                       .token_types = config.type_vocab_size,
                                       .norm_epsilon = config.norm_epsilon,
                                       .init_std = config.initializer_range,
                                       .dropout = config.embedding_dropout}));
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    units.push_back(make_post_norm_block(block(config, layer)));
  }
  const auto classes = static_cast<std::int64_t>(config.labels.size());
  units.push_back(
      make_classification_head({.pooler = dense(config, "bert.pooler.dense", hidden, hidden),
                                .classifier = dense(config, "classifier", hidden, classes),
                                .dropout = config.classifier_dropout}));
  return units;
}

}  // namespace sherd
