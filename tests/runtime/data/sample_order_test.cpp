#include "runtime/data/sample_order.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"

namespace sherd {
namespace {

std::vector<std::int64_t> epoch_of(const SampleOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> positions;
  const std::int64_t count = order.samples_per_epoch();
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(order.position(epoch * count + i));
  return positions;
}

}  // namespace

TEST_CASE("each epoch takes every sample exactly once, in an order of its own", "[data]") {
  const std::int64_t count = GENERATE(1, 2, 3, 17, 64, 65, 1000, 4097);
  const SampleOrder order(count, true, 42);
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> positions = epoch_of(order, epoch);
    orders.insert(positions);
    if (count >= 64) CHECK(positions != all);
    std::sort(positions.begin(), positions.end());
    REQUIRE(positions == all);
  }
  if (count >= 17) CHECK(orders.size() == 3);
}

TEST_CASE("the order depends on the seed", "[data]") {
  CHECK(epoch_of(SampleOrder(100, true, 1), 0) != epoch_of(SampleOrder(100, true, 2), 0));
  CHECK(epoch_of(SampleOrder(100, true, 1), 0) == epoch_of(SampleOrder(100, true, 1), 0));
}

TEST_CASE("without shuffling samples come in sequence, epoch after epoch", "[data]") {
  const SampleOrder order(3, false, 42);
  std::vector<std::int64_t> positions;
  for (std::int64_t n = 0; n < 7; ++n) positions.push_back(order.position(n));
  CHECK(positions == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2, 0});
  CHECK(order.epoch(2) == 0);
  CHECK(order.epoch(3) == 1);
}

TEST_CASE("ranks of any world size read the same samples between them", "[data]") {
  // A step's samples are dealt out by their numbers, so the union cannot depend on how.
  constexpr std::int64_t kSamples = 101;
  constexpr std::int64_t kBatch = 24;
  constexpr std::int64_t kSteps = 11;  // more than two epochs
  const SampleOrder single(kSamples, true, 7);
  for (std::int64_t world = 1; world <= 9; ++world) {
    std::int64_t cursor = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      std::multiset<std::int64_t> seen;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const SampleOrder own(kSamples, true, 7);  // each rank has its own
        const std::int64_t end = cursor + kBatch * (rank + 1) / world;
        for (std::int64_t n = cursor + kBatch * rank / world; n < end; ++n) {
          seen.insert(own.position(n));
        }
      }
      std::multiset<std::int64_t> expected;
      for (std::int64_t n = cursor; n < cursor + kBatch; ++n) expected.insert(single.position(n));
      REQUIRE(seen == expected);
      cursor += kBatch;
    }
  }
}

TEST_CASE("an order needs samples and numbers from 0", "[data]") {
  CHECK_THROWS_AS(SampleOrder(0, true, 1), ArgumentError);
  CHECK_THROWS_AS(SampleOrder(5, true, 1).position(-1), ArgumentError);
  const SampleOrder order(5, true, 1);
  const std::int64_t far = std::int64_t{1} << 60;
  CHECK(order.position(far) < 5);
}

}  // namespace sherd
