#pragma once

#include "kernels/launch.cuh"

// Rows that a block (or a warp) walks in packs.

namespace sherd {

/// Calls f(column, value&) for the row's elements that this thread has, V at a time; V divides width.
template <int V, class T, class F>
__device__ inline void for_row(const T* row, std::int64_t width, int thread, int threads, F f) {
  for (std::int64_t c = static_cast<std::int64_t>(thread) * V; c < width;
       c += static_cast<std::int64_t>(threads) * V) {
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(row + c);
    f(c, pack);
  }
}

/// Threads for one row: a warp for short rows, up to a block for long ones.
inline int threads_for_row(std::int64_t width, int pack) {
  int threads = kWarp;
  while (threads < 512 && static_cast<std::int64_t>(threads) * pack < width) threads *= 2;
  return threads;
}

/// The pack for rows of `width` at these pointers: kPack<T>, or 1.
template <class T, class... P>
bool rows_pack(std::int64_t width, const P*... pointers) {
  return width % kPack<T> == 0 && (is_aligned(pointers) && ...);
}

}  // namespace sherd
