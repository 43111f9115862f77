#pragma once

#include <cmath>

#include "kernels/attention_engines.h"
#include "kernels/warp_products.cuh"

// What the own attention kernels share. A block has four warps and one tile of rows (queries, or in
// the gradient of keys and values: keys), 16 rows a warp, and walks over tiles of the other side.
// Heads wider than 128 have two warps a strip of rows: each computes all its scores and half the
// columns of what they weigh.

namespace sherd {

inline constexpr int kAttentionThreads = 128;
inline constexpr float kLog2E = 1.4426950408889634f;

/// A call's sizes, as kernels see them. Layouts are those of kernels/attention.h.
struct AttentionCall {
  explicit AttentionCall(const on_cuda::AttentionProblem& p, const std::int32_t* mask_of_tokens,
                         const std::int32_t* done_samples, bool rows_are_packed)
      : batch(p.batch),
        tokens(p.tokens),
        heads(p.heads),
        kv_heads(p.kv_heads),
        width(static_cast<int>(p.width)),
        scale(p.scale),
        causal(p.causal),
        packed(rows_are_packed),
        mask(mask_of_tokens),
        done(done_samples) {}

  std::int64_t batch, tokens;
  int heads, kv_heads, width;
  float scale;
  bool causal;
  bool packed;               ///< rows may be read 16 bytes at a time
  const std::int32_t* mask;  ///< or null
  const std::int32_t* done;  ///< samples to leave alone, or null

  __device__ std::int64_t qkv_stride() const {
    return static_cast<std::int64_t>(heads + 2 * kv_heads) * width;
  }
  __device__ std::int64_t out_stride() const { return static_cast<std::int64_t>(heads) * width; }
  /// Where slot `slot` (a query, key or value head) of a sample starts in qkv.
  __device__ std::int64_t slot(std::int64_t sample, int slot) const {
    return sample * tokens * qkv_stride() + static_cast<std::int64_t>(slot) * width;
  }
  __device__ std::int64_t out(std::int64_t sample, int head) const {
    return sample * tokens * out_stride() + static_cast<std::int64_t>(head) * width;
  }
  /// Where the log-sum-exps of a head start.
  __device__ std::int64_t row(std::int64_t sample, int head) const {
    return (sample * heads + head) * tokens;
  }
  __device__ bool shows(std::int64_t sample, std::int64_t key) const {
    return key < tokens && (mask == nullptr || mask[sample * tokens + key] != 0);
  }
  __device__ bool is_done(std::int64_t sample) const {
    return done != nullptr && done[sample] != 0;
  }
};

/// Tiles of one kernel. Streamed is how many rows of the other side are in shared memory at once.
template <int Width, int Streamed>
struct AttentionTiles {
  static constexpr int kParts = Width > 128 ? 2 : 1;
  static constexpr int kStrips = kAttentionThreads / kWarp / kParts;
  static constexpr int kRows = kWarpRows * kStrips;
  static constexpr int kStreamed = Streamed;
  static constexpr int kColumns = Width / kParts;  ///< that a warp weighs

  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int strip() { return warp() % kStrips; }
  __device__ static int first_column() { return warp() / kStrips * kColumns; }
};

/// Which tile of rows a block has; which tiles come first is for the caller to say: under a causal
/// mask the last queries and the first keys take longest, and should not start last.
struct TilePlace {
  std::int64_t sample;
  int head;
  std::int64_t first;  ///< row of the block's first

  __device__ TilePlace(std::int64_t tokens, int heads, int rows, bool last_rows_first) {
    const std::int64_t tiles = (tokens + rows - 1) / rows;
    const std::int64_t index = blockIdx.x;
    const std::int64_t tile = index % tiles;
    first = (last_rows_first ? tiles - 1 - tile : tile) * rows;
    head = static_cast<int>(index / tiles % heads);
    sample = index / tiles / heads;
  }
};
inline std::int64_t tile_blocks(const AttentionCall& call, int heads, int rows) {
  return (call.tokens + rows - 1) / rows * heads * call.batch;
}

/// Rows [first, first + Rows) of one head to shared memory; zeros past the last token and past the
/// head's width.
template <int Width, int Rows, class T>
__device__ inline void load_tile(const AttentionCall& call, const T* head, std::int64_t stride,
                                 std::int64_t first, T* tile) {
  constexpr int kStride = kTileStride<T, Width>;
  const auto walk = [&]<int V>() {
    constexpr int kPacks = Width / V;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * kPacks; i += kAttentionThreads) {
      const int row = i / kPacks;
      const int column = i % kPacks * V;
      Pack<T, V> pack{};
      if (first + row < call.tokens && column < call.width) {
        pack = *reinterpret_cast<const Pack<T, V>*>(head + (first + row) * stride + column);
      }
      *reinterpret_cast<Pack<T, V>*>(tile + row * kStride + column) = pack;
    }
  };
  call.packed ? walk.template operator()<kPack<T>>() : walk.template operator()<1>();
}

/// A warp's 16 rows, each multiplied by its factor, to `to`: the first row and column of the warp's
/// part, of which `rows` and `columns` exist.
template <int Columns, class T>
__device__ inline void store_rows(const Quad (&sum)[Columns / 8], const float (&factor)[2], T* to,
                                  std::int64_t stride, std::int64_t rows, int columns,
                                  bool packed) {
  const int lane = lane_index();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = lane / 4 + half * 8;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j) {
      const int column = j * 8 + lane % 4 * 2;
      T* at = to + row * stride + column;
      const Pack<T, 2> pair{{from_float<T>(sum[j][half * 2] * factor[half]),
                             from_float<T>(sum[j][half * 2 + 1] * factor[half])}};
      if (packed && column < columns) *reinterpret_cast<Pack<T, 2>*>(at) = pair;
      if (!packed && column < columns) at[0] = pair.v[0];
      if (!packed && column + 1 < columns) at[1] = pair.v[1];
    }
  }
}

template <int Columns>
__device__ inline void clear(Quad (&sum)[Columns]) {
#pragma unroll
  for (int j = 0; j < Columns; ++j) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0.0f;
}

__device__ inline float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}
__device__ inline float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/// Calls f.operator()<Width>() with the narrowest width of tiles that holds a head.
template <class F>
void with_tile_width(std::int64_t width, F&& f) {
  if (width <= 64) return f.template operator()<64>();
  if (width <= 128) return f.template operator()<128>();
  f.template operator()<256>();
}

}  // namespace sherd
