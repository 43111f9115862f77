#pragma once

#include <algorithm>
#include <cstdint>

#include "core/error.h"
#include "kernels/blocks.h"
#include "kernels/update.h"

namespace sherd {

/// Calls f(first, last, weight_decay) for every block of [0, numel), cut where segments end, on the
/// threads of the calling stream. Throws ArgumentError unless the last segment ends at numel.
template <class F>
void for_decay_segments(std::int64_t numel, const DecaySegment* segments, int count, const F& f) {
  const DecaySegment* const end = segments + count;
  require(end[-1].end == numel, "decay segments end at {}, the shard at {}", end[-1].end, numel);
  for_blocks(numel, [=](std::int64_t first, std::int64_t last) {
    const DecaySegment* s = std::upper_bound(
        segments, end, first, [](std::int64_t i, const DecaySegment& d) { return i < d.end; });
    while (first < last) {
      const std::int64_t stop = std::min(s->end, last);
      if (first < stop) f(first, stop, s->weight_decay);
      first = std::max(first, stop);
      ++s;
    }
  });
}

}  // namespace sherd
