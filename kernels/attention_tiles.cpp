#include "kernels/attention_tiles.h"

namespace sherd {

void score_tile(const AttentionShape& shape, const AttentionTile& tile, const MatrixOperand& q,
                const MatrixOperand& k, const std::int32_t* mask, TileScores& scores) {
  sgemm(tile.queries, tile.keys, shape.width, shape.scale, q, {k.data, k.stride, true}, 0.0f,
        scores, kKeyTile);
  if (mask == nullptr) return;
  const std::int32_t* real = mask + tile.key;
  for (std::int64_t r = 0; r < tile.queries; ++r) {
    float* row = scores + r * kKeyTile;
#pragma omp simd
    for (std::int64_t c = 0; c < tile.keys; ++c) row[c] = real[c] != 0 ? row[c] : kMinusInfinity;
  }
}

}  // namespace sherd
