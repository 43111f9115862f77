#include "apps/device_sizes.h"

#include <catch2/catch_test_macros.hpp>

#include "apps/device_memory.h"
#include "core/error.h"

using namespace sherd;

namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

}  // namespace

TEST_CASE("of a card's size a plan may have what driver and libraries leave, of a CPU's all") {
  const DeviceMemory card({50 * kGib}, 1, DeviceKind::cuda);
  CHECK(card.reserve_bytes() == gpu_reserve(1));
  CHECK(card.of_rank(0) == 50 * kGib - gpu_reserve(1));
  // A run of 49.6 GiB took 51.5 GiB of an H200.
  CHECK(gpu_reserve(1) > 2 * kGib);
  CHECK(gpu_reserve(2) > gpu_reserve(1));
  CHECK(DeviceMemory({50 * kGib}, 1).of_rank(0) == 50 * kGib);
  CHECK(DeviceMemory({kGib}, 1, DeviceKind::cuda).of_rank(0) == 0);
}

TEST_CASE("what devices were found to leave comes back as it was") {
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    const DeviceMemory found = DeviceMemory::leaving({5 * kGib, 7 * kGib}, 2, kind);
    CHECK(found.per_rank() == std::vector<std::int64_t>{5 * kGib, 7 * kGib});
    CHECK(DeviceMemory(found.sizes(), 2, kind).per_rank() == found.per_rank());
  }
}

TEST_CASE("a card leaves less when its rank gets peers") {
  const DeviceMemory alone({24 * kGib}, 1, DeviceKind::cuda);
  CHECK(alone.for_world(2).of_rank(1) == 24 * kGib - gpu_reserve(2));
  CHECK(alone.for_world(2).of_rank(1) < alone.of_rank(0));
}

TEST_CASE("sizes are the same for all by their values") {
  CHECK(DeviceMemory({7}, 3).is_same_for_all());
  CHECK(DeviceMemory({7, 7, 7}, 3).is_same_for_all());
  CHECK(!DeviceMemory({7, 7, 8}, 3).is_same_for_all());
  CHECK_THROWS_AS(DeviceMemory({7, 7}, 3), ArgumentError);
}

TEST_CASE("what is reserved is told") {
  CHECK(of_rank_text(DeviceMemory({kGib}, 1), 0) == "1.0 GiB");
  CHECK(reserve_line(DeviceMemory({kGib}, 1)).empty());
  const DeviceMemory card({50 * kGib}, 1, DeviceKind::cuda);
  CHECK(of_rank_text(card, 0) == "47.9 GiB (50.0 GiB less a reserve of 2.1 GiB)");
  CHECK(reserve_line(card).find("2.1 GiB of each card for the driver's context") !=
        std::string::npos);
}
