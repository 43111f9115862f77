#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/block_numel.h"

namespace sherd {

/// Calls f(first, last) for each block of [0, numel), on the threads of the calling stream. `f`
/// must not throw.
template <class F>
void for_blocks(std::int64_t numel, const F& f) {
  const std::int64_t blocks = block_count(numel);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (std::int64_t b = 0; b < blocks; ++b) {
    f(b * kBlockNumel, std::min(numel, (b + 1) * kBlockNumel));
  }
}

/// Adds up f(first, last) over the blocks with `+=` of Sum, which must be exact (integers): the
/// order of the additions is not fixed. `f` must not throw.
template <class Sum, class F>
Sum sum_blocks(std::int64_t numel, const F& f) {
  const std::int64_t blocks = block_count(numel);
  Sum total{};
#pragma omp parallel if (blocks > 1)
  {
    Sum mine{};
#pragma omp for schedule(static) nowait
    for (std::int64_t b = 0; b < blocks; ++b) {
      mine += f(b * kBlockNumel, std::min(numel, (b + 1) * kBlockNumel));
    }
#pragma omp critical(sherd_sum_blocks)
    total += mine;
  }
  return total;
}

}  // namespace sherd
