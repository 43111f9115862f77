#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/unit.h"

namespace sherd {

struct BertEmbeddingSpec {
  std::string prefix;  ///< of the parameters' names
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t token_types = 0;
  float norm_epsilon = 0.0f;
  float init_std = 0.0f;
  float dropout = 0.0f;
};

/// The first unit of a BERT, "embedding": tokens [B, T], their positions and their types to rows
/// [B, T, C], normed. Keeps two numbers a token, the norm's statistics.
std::unique_ptr<Unit> make_bert_embedding(const BertEmbeddingSpec& spec);

}  // namespace sherd
