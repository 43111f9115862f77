#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collectives/gpu.h"

namespace sherd {

/// From how many bytes in all on GPUs read peers' memory.
struct PeerThresholds {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t gather_bytes = kNever;
  std::int64_t reduce_bytes = kNever;
  bool operator==(const PeerThresholds&) const = default;
};

/// The smallest sizes from which on peer copies were faster at every size. `times` are in order of
/// size.
PeerThresholds find_thresholds(const std::vector<TransportTime>& times);

/// "gathers from 4096 KiB, no reductions"
std::string describe(const PeerThresholds& thresholds);

}  // namespace sherd
