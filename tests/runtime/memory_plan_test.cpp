#include "runtime/memory_plan.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <random>

using namespace sherd;

namespace {

bool alive(const Region& region, int position) {
  if (region.persistent) return true;
  for (const Interval& interval : region.live) {
    if (interval.first <= position && position <= interval.last) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("No two regions that live at the same time share a byte") {
  std::mt19937 random(GENERATE(range(0, 100)));
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int positions = pick(1, 20);
  std::vector<Region> regions;
  std::vector<std::int64_t> sizes;
  for (int r = pick(1, 40); r > 0; --r) {
    Region region;
    region.persistent = pick(0, 4) == 0;
    const int first = pick(0, positions - 1);
    region.live.push_back({first, pick(first, positions - 1)});
    regions.push_back(region);
    sizes.push_back(pick(0, 3) == 0 ? 0 : pick(1, 5000));
  }
  const MemoryPlan plan = pack(regions, sizes, positions);
  for (int p = 0; p < positions; ++p) {
    for (std::size_t a = 0; a < regions.size(); ++a) {
      const Placement& x = plan.placements[a];
      CHECK(x.offset + x.bytes <= plan.arena_bytes);
      for (std::size_t b = a + 1; b < regions.size(); ++b) {
        if (!alive(regions[a], p) || !alive(regions[b], p)) continue;
        const Placement& y = plan.placements[b];
        if (x.bytes == 0 || y.bytes == 0) continue;
        CHECK((x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset));
      }
    }
  }
}

TEST_CASE("Regions that never meet share their bytes") {
  std::vector<Region> regions(3);
  regions[0].live = {{0, 1}};
  regions[1].live = {{2, 3}};
  regions[2].live = {{0, 0}, {3, 3}};
  const std::vector<std::int64_t> sizes = {1024, 1024, 512};
  const MemoryPlan plan = pack(regions, sizes, 4);
  CHECK(plan.arena_bytes == 1024 + 512);
  CHECK(plan.slack_bytes == 0);
}
