#include "collectives/peer_thresholds.h"

#include <fmt/format.h>

namespace sherd {
namespace {

std::int64_t find_threshold(const std::vector<TransportTime>& times, bool gather) {
  std::int64_t bytes = PeerThresholds::kNever;
  for (std::size_t i = times.size(); i-- > 0;) {
    if (times[i].gather != gather) continue;
    if (times[i].peer_ms >= times[i].nccl_ms) break;
    bytes = times[i].bytes;
  }
  return bytes;
}

std::string text_of(const char* what, std::int64_t bytes) {
  constexpr std::int64_t kKiB = 1024;
  if (bytes == PeerThresholds::kNever) return fmt::format("no {}", what);
  if (bytes == 0) return fmt::format("all {}", what);
  return fmt::format("{} from {} KiB", what, bytes / kKiB);
}

}  // namespace

PeerThresholds find_thresholds(const std::vector<TransportTime>& times) {
  return {find_threshold(times, true), find_threshold(times, false)};
}

std::string describe(const PeerThresholds& thresholds) {
  return text_of("gathers", thresholds.gather_bytes) + ", " +
         text_of("reductions", thresholds.reduce_bytes);
}

}  // namespace sherd
