#pragma once

#include "kernels/launch.cuh"

// Rows that a part of a warp, or a block, walks in packs. Threads lie (lane of the row, row of the
// block); a row of more lanes than a warp has its block alone. Which thread adds what depends on
// the width and the pack alone.

namespace sherd {

struct RowThreads {
  int lanes;  ///< of a row: a power of two
  int rows;   ///< of a block

  dim3 block() const { return {static_cast<unsigned>(lanes), static_cast<unsigned>(rows)}; }
  unsigned blocks_for_rows(std::int64_t count) const {
    return static_cast<unsigned>((count + rows - 1) / rows);
  }
};

/// Threads for rows of `width` in packs: up to a warp as many as there are packs, and for longer
/// rows so many (512 at most) that each takes up to `turns` packs.
inline RowThreads threads_for_rows(std::int64_t width, int pack, int turns) {
  constexpr int kMostLanes = 512;
  const std::int64_t packs = (width + pack - 1) / pack;
  int lanes = 1;
  while (lanes < kWarp && lanes < packs) lanes *= 2;
  while (lanes < kMostLanes && static_cast<std::int64_t>(lanes) * turns < packs) lanes *= 2;
  return {lanes, lanes > kWarp ? 1 : kBlock / lanes};
}

/// Calls f.operator()<V>() with the pack for rows of `width` at these pointers: kPack<T>, or 1.
template <class T, class F, class... P>
void with_row_pack(std::int64_t width, F&& f, const P*... pointers) {
  if (width % kPack<T> == 0 && (is_aligned(pointers) && ...)) {
    f.template operator()<kPack<T>>();
  } else {
    f.template operator()<1>();
  }
}

/// The row of this thread; it may lie past the last, and then the thread only helps to sum.
__device__ inline std::int64_t row_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}

/// Calls f(column) for the first columns of this thread's packs of V.
template <int V, class F>
__device__ inline void for_columns(std::int64_t width, F f) {
  for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * V; c < width;
       c += static_cast<std::int64_t>(blockDim.x) * V) {
    f(c);
  }
}

/// Sum over the threads of a row, the same on each, in a fixed tree. All threads of the block call.
__device__ inline float row_sum(float value) {
  const int lanes = static_cast<int>(blockDim.x);
  if (lanes > kWarp) return block_sum(value);
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

}  // namespace sherd
