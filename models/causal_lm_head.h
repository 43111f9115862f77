#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/layers.h"
#include "runtime/unit.h"

namespace sherd {

struct CausalLmHeadSpec {
  NormKind norm = NormKind::rms;
  std::string norm_name;
  float norm_epsilon = 0.0f;
  std::int64_t hidden_size = 0;
  std::int64_t vocab_size = 0;
  std::string tied_to;  ///< the embedding table, when the head is another use of it
  float init_std = 0.0f;
};

/// The last unit of a language model, "head": norm, product with "lm_head.weight" and cross-entropy
/// of each row with its own label (the labels are already the next tokens). Logits exist a chunk of
/// rows at a time. Saves nothing: when training, forward does no work and backward makes losses and
/// gradients together.
std::unique_ptr<Unit> make_causal_lm_head(const CausalLmHeadSpec& spec);

/// Rows whose logits exist at once, of `rows`: as many as kLogitsChunkBytes hold, but enough for
/// efficient products. Every chunk reads the weight twice and its gradient once, so there are as
/// many rows as it has columns: logits then take as much memory as the weight does.
std::int64_t logits_chunk_rows(std::int64_t rows, std::int64_t vocab_size, std::int64_t hidden_size,
                               DType compute);
inline constexpr std::int64_t kLogitsChunkBytes = std::int64_t{32} << 20;
inline constexpr std::int64_t kLogitsChunkMinRows = 64;

}  // namespace sherd
