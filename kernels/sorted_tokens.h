#pragma once

#include <cstdint>

#include "core/buffer.h"

namespace sherd {

/// A token's position, below the token itself in a key of 64 bits.
inline constexpr int kPositionBits = 32;

/// Where a sort of `count` token positions lies in its scratch: the keys, their copy in another
/// order, and what the sort needs itself, which is less than a byte a key and a few tables.
struct SortScratch {
  explicit SortScratch(std::int64_t count) {
    constexpr std::int64_t kTableBytes = std::int64_t{1} << 16;
    key_bytes = aligned(count * static_cast<std::int64_t>(sizeof(std::uint64_t)));
    workspace_bytes = aligned(count + kTableBytes);
    total_bytes = 2 * key_bytes + workspace_bytes;
  }

  std::int64_t key_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t total_bytes = 0;
};

}  // namespace sherd
