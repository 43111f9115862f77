#include "collectives/peer_thresholds.h"

#include <catch2/catch_test_macros.hpp>

namespace sherd::test {
namespace {

constexpr bool kGather = true;
constexpr bool kReduce = false;

}  // namespace

TEST_CASE("peers copy from the size on from which they are faster at every size") {
  const std::vector<TransportTime> times{
      {kGather, 1024, 1.0, 0.9},  // faster, but not at the next size
      {kReduce, 1024, 1.0, 0.5}, {kGather, 2048, 1.0, 1.0}, {kReduce, 2048, 1.0, 0.5},
      {kGather, 4096, 2.0, 1.5}, {kReduce, 4096, 2.0, 1.5}, {kGather, 8192, 4.0, 3.0},
      {kReduce, 8192, 4.0, 3.0},
  };
  const PeerThresholds found = find_thresholds(times);
  CHECK(found == PeerThresholds{4096, 1024});
  CHECK(describe(found) == "gathers from 4 KiB, reductions from 1 KiB");
}

TEST_CASE("peers never copy where they are slower at the largest size, or nothing was measured") {
  const std::vector<TransportTime> times{{kGather, 1024, 1.0, 0.5}, {kGather, 2048, 1.0, 1.1}};
  CHECK(find_thresholds(times) == PeerThresholds{});
  CHECK(find_thresholds({}) == PeerThresholds{});
  CHECK(describe(PeerThresholds{}) == "no gathers, no reductions");
  CHECK(describe(PeerThresholds{0, 0}) == "all gathers, all reductions");
}

}  // namespace sherd::test
