#pragma once

#include <cstdint>

namespace sherd {

/// A contiguous range of elements of a flat buffer.
struct Shard {
  std::int64_t offset = 0;
  std::int64_t numel = 0;
  std::int64_t end() const { return offset + numel; }
  bool operator==(const Shard&) const = default;
};

}  // namespace sherd
