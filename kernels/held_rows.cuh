#pragma once

#include "kernels/rows.cuh"

// Rows that a kernel goes over more than once, and reads once: each thread holds its packs in
// registers, as many as threads_for_rows takes for its turns. Packs of wider rows are read again.

namespace sherd {

/// The packs that this thread has of one row; of none when `mine` is 0.
template <int V, int Turns, class T>
struct HeldRow {
  __device__ HeldRow(const T* row, std::int64_t mine) : from(row), width(mine) {
    for_turns([&](int turn, std::int64_t c) { held[turn] = load_pack<V>(from + c); });
  }

  /// Calls f(turn, first column) for the packs that are held.
  template <class F>
  __device__ void for_turns(F f) const {
#pragma unroll
    for (int turn = 0; turn < Turns; ++turn) {
      const std::int64_t c = (threadIdx.x + static_cast<std::int64_t>(turn) * blockDim.x) * V;
      if (c < width) f(turn, c);
    }
  }

  const T* from;
  std::int64_t width;
  Pack<T, V> held[Turns];
};

/// Calls f(first column, packs...) for this thread's packs of rows of one width.
template <int V, int Turns, class F, class T, class... Rows>
__device__ inline void for_packs(F f, const HeldRow<V, Turns, T>& row, const Rows&... rows) {
  row.for_turns([&](int turn, std::int64_t c) { f(c, row.held[turn], rows.held[turn]...); });
  const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * V;
  for (std::int64_t c = static_cast<std::int64_t>(threadIdx.x) * V + Turns * step; c < row.width;
       c += step) {
    f(c, load_pack<V>(row.from + c), load_pack<V>(rows.from + c)...);
  }
}

}  // namespace sherd
