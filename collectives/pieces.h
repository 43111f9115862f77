#pragma once

#include <algorithm>
#include <cstdint>

#include "core/shard.h"

namespace sherd {

/// How many pieces of at most `limit` elements `numel` elements make; 0 for none.
constexpr std::int64_t count_pieces(std::int64_t numel, std::int64_t limit) {
  return numel / limit + (numel % limit != 0 ? 1 : 0);
}

/// Piece `index` of `range`, cut into pieces of at most `limit` elements; empty, at the range's
/// end, from `count_pieces` on.
constexpr Shard piece_of(Shard range, std::int64_t index, std::int64_t limit) {
  if (index >= count_pieces(range.numel, limit)) return {range.end(), 0};
  const std::int64_t first = index * limit;
  return {range.offset + first, std::min(limit, range.numel - first)};
}

/// Part `index` of `numel` elements cut into `count` parts that differ by one element at most.
constexpr Shard even_part(std::int64_t numel, int count, int index) {
  const std::int64_t rest = numel % count;
  const std::int64_t longer = std::min<std::int64_t>(index, rest);
  return {numel / count * index + longer, numel / count + (index < rest ? 1 : 0)};
}

}  // namespace sherd
