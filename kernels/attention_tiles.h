#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/blas.h"
#include "kernels/float_rows.h"

namespace sherd {

// What the forward and the backward pass of attention share: how a packed projection is laid out,
// how it is cut into tiles, and which keys a query sees.

inline constexpr std::int64_t kQueryTile = 64;
inline constexpr std::int64_t kKeyTile = 128;
inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// A 16-bit tile is converted into at most this many floats on the stack, so tiles of very wide
/// heads have fewer rows. Heads may be as wide as this.
inline constexpr std::int64_t kTileNumel = 32768;

/// Sizes of one call over qkv [batch, tokens, heads + 2 * kv_heads, width].
struct AttentionShape {
  std::int64_t batch = 0, tokens = 0, heads = 0, kv_heads = 0, width = 0;
  bool causal = true;
  float scale = 1.0f;

  std::int64_t group() const { return heads / kv_heads; }
  /// Elements from token to token in qkv, and in out.
  std::int64_t qkv_stride() const { return (heads + 2 * kv_heads) * width; }
  std::int64_t out_stride() const { return heads * width; }
  /// Where the rows of one head of one sample start in qkv.
  std::int64_t query(std::int64_t b, std::int64_t h) const {
    return b * tokens * qkv_stride() + h * width;
  }
  std::int64_t key(std::int64_t b, std::int64_t kv) const { return query(b, heads + kv); }
  std::int64_t value(std::int64_t b, std::int64_t kv) const {
    return query(b, heads + kv_heads + kv);
  }
  std::int64_t out(std::int64_t b, std::int64_t h) const {
    return b * tokens * out_stride() + h * width;
  }

  std::int64_t query_tile() const {
    return std::clamp<std::int64_t>(kTileNumel / width, 1, kQueryTile);
  }
  std::int64_t key_tile() const {
    return std::clamp<std::int64_t>(kTileNumel / width, 1, kKeyTile);
  }
};

/// Queries [query, query + queries) against keys [key, key + keys) of one head of one sample.
struct AttentionTile {
  std::int64_t query, queries, key, keys;

  /// Keys of this tile, from its first on, that its row `r` sees.
  std::int64_t seen(std::int64_t r, bool causal) const {
    return causal ? std::clamp<std::int64_t>(query + r + 1 - key, 0, keys) : keys;
  }
};

/// The tile of `shape` that starts at (query, key), without keys that no query of it sees; `keys`
/// is 0 where none is seen.
inline AttentionTile tile_at(const AttentionShape& shape, std::int64_t query, std::int64_t key) {
  const std::int64_t queries = std::min(shape.query_tile(), shape.tokens - query);
  const std::int64_t end = shape.causal ? query + queries : shape.tokens;
  return {query, queries, key, std::clamp<std::int64_t>(end - key, 0, shape.key_tile())};
}

/// The mask of sample `b`, or null.
inline const std::int32_t* mask_of(const std::int32_t* mask, const AttentionShape& shape,
                                   std::int64_t b) {
  return mask == nullptr ? nullptr : mask + b * shape.tokens;
}

/// Scores of one tile, a row per query.
using TileScores = float[kQueryTile * kKeyTile];

/// scores = scale * q · kᵀ, then -inf where the mask hides the key; what lies past a row's `seen`
/// keys is undefined. `mask` points at the tokens of the sample, or is null.
void score_tile(const AttentionShape& shape, const AttentionTile& tile, const MatrixOperand& q,
                const MatrixOperand& k, const std::int32_t* mask, TileScores& scores);

}  // namespace sherd
