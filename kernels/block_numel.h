#pragma once

#include <cstdint>

namespace sherd {

/// Elements that one thread takes at a time. Cuts depend on the numel alone, so even a sum made
/// block by block has the same bits for any number of threads.
inline constexpr std::int64_t kBlockNumel = 16384;

inline std::int64_t block_count(std::int64_t numel) {
  return (numel + kBlockNumel - 1) / kBlockNumel;
}

}  // namespace sherd
