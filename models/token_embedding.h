#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/unit.h"

namespace sherd {

struct TokenEmbeddingSpec {
  std::string table_name;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::string positions_name = {};  ///< empty: no learned positions
  std::int64_t max_positions = 0;
  float init_std = 0.0f;
  float dropout = 0.0f;
};

/// The first unit of a language model, "embedding": tokens [B, T] to rows [B, T, C]. Saves nothing.
std::unique_ptr<Unit> make_token_embedding(const TokenEmbeddingSpec& spec);

}  // namespace sherd
