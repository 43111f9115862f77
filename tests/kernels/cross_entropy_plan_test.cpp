#include "kernels/cross_entropy_plan.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace sherd;

namespace {

constexpr std::int64_t kKibibyte = 1024;

}  // namespace

TEST_CASE("a row of cross-entropy lies in as few blocks as hold it twice over, if any do") {
  const std::int64_t shared = GENERATE(96, 160, 224) * kKibibyte;  // of 8.6, 8.0 and 9.0
  const unsigned most_blocks = GENERATE(1u, 8u);
  const std::int64_t row = GENERATE(0, 6, 2, 64 * 1024, 100 * 1024, 256 * 1024, 512 * 1024,
                                    1000 * 1024, 4 * 1024 * 1024);
  CAPTURE(shared, most_blocks, row);
  const CrossEntropyPlan plan(row, shared, most_blocks);
  CHECK(plan.blocks <= most_blocks);
  CHECK((plan.threads % 32 == 0 && plan.threads <= 1024));
  // Less than a pack at either end of the row is not kept.
  CHECK(plan.block_bytes * plan.blocks >= row - row % 16);
  if (plan.fits) {
    CHECK(plan.block_bytes <= shared);
  } else {
    CHECK(plan.blocks == 1);
    CHECK(row > most_blocks * shared);
  }
  if (plan.blocks > 1) CHECK(row > plan.blocks / 2 * (shared / 2));
}

TEST_CASE("what a row of cross-entropy takes where a device has clusters, and where it has none") {
  constexpr std::int64_t kRow = 256 * kKibibyte;  // 128 k classes in 16 bits
  const CrossEntropyPlan hopper(kRow, 224 * kKibibyte, 8);
  CHECK((hopper.fits && hopper.blocks == 4));
  CHECK(hopper.block_bytes == kRow / 4);
  const CrossEntropyPlan ampere(kRow, 160 * kKibibyte, 1);
  CHECK((!ampere.fits && ampere.blocks == 1 && ampere.threads == 1024));
  const CrossEntropyPlan small(64 * kKibibyte, 96 * kKibibyte, 1);
  CHECK((small.fits && small.blocks == 1));
}
