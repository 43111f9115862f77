#include "runtime/share_elements.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <numeric>
#include <random>

using namespace sherd;

namespace {

constexpr std::int64_t kGranule = 64;
constexpr std::int64_t kGranuleBytes = kGranule * 16;

using Counts = std::vector<std::vector<std::int64_t>>;

std::int64_t held(const std::vector<SharedBuffer>& buffers, const Counts& counts,
                  std::size_t rank) {
  std::int64_t bytes = 0;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    bytes += bytes_at_rest(buffers[b], counts[b][rank]);
  }
  return bytes;
}

void check_covered(const std::vector<SharedBuffer>& buffers, const Counts& counts,
                   std::size_t ranks) {
  REQUIRE(counts.size() == buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    REQUIRE(counts[b].size() == ranks);
    REQUIRE(std::accumulate(counts[b].begin(), counts[b].end(), std::int64_t{0}) ==
            buffers[b].numel);
    for (const std::int64_t count : counts[b]) REQUIRE(count >= 0);
  }
}

std::vector<SharedBuffer> some_buffers() {
  return {{kGranule * 1000, {4, 4, 4, 4}},
          {kGranule, {4, 4, 4, 4}},
          {kGranule * 333, {4}},
          {0, {4, 4, 4, 4}}};
}

}  // namespace

TEST_CASE("all elements are shared, and no capacity is exceeded when there is a granule to spare") {
  std::mt19937_64 random(GENERATE(1u, 2u, 3u));
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  for (int i = 0; i < 200; ++i) {
    std::vector<SharedBuffer> buffers;
    for (std::int64_t b = draw(9); b >= 0; --b) {
      buffers.push_back({kGranule * draw(5000),
                         random() % 4 == 0 ? std::vector<int>{4} : std::vector<int>{4, 4, 8}});
    }
    std::vector<std::int64_t> capacities(static_cast<std::size_t>(1 + draw(6)));
    std::int64_t left = bytes_at_rest(buffers);
    for (std::int64_t& capacity : capacities) {
      const std::int64_t part = draw(left);
      capacity = part + kGranuleBytes;
      left -= part;
    }
    capacities[random() % capacities.size()] += left;
    const ShareBy by = i % 2 == 0 ? ShareBy::room : ShareBy::order;
    const Counts counts = share_elements(buffers, capacities, by, kGranule);
    check_covered(buffers, counts, capacities.size());
    for (std::size_t rank = 0; rank < capacities.size(); ++rank) {
      CAPTURE(i, rank);
      REQUIRE(held(buffers, counts, rank) <= capacities[rank]);
    }
  }
}

TEST_CASE("by room, ranks hold the same part of what they can") {
  const auto buffers = some_buffers();
  const std::int64_t total = bytes_at_rest(buffers);
  const std::vector<std::int64_t> capacities = {2 * total, 0, 6 * total, -5};
  const Counts counts = share_elements(buffers, capacities, ShareBy::room, kGranule);
  check_covered(buffers, counts, 4);
  CHECK(std::abs(held(buffers, counts, 0) - total / 4) <= 4 * kGranuleBytes);
  CHECK(held(buffers, counts, 1) == 0);
  CHECK(held(buffers, counts, 3) == 0);
}

TEST_CASE("in order, a rank is full before the next holds anything") {
  const auto buffers = some_buffers();
  const std::int64_t total = bytes_at_rest(buffers);
  const std::vector<std::int64_t> capacities = {total / 3, total / 3, total, total};
  const Counts counts = share_elements(buffers, capacities, ShareBy::order, kGranule);
  check_covered(buffers, counts, 4);
  for (const std::size_t rank : {0, 1}) {
    CHECK(held(buffers, counts, rank) <= capacities[rank]);
    CHECK(held(buffers, counts, rank) > capacities[rank] - kGranuleBytes);
  }
  CHECK(held(buffers, counts, 3) == 0);
}

TEST_CASE("where capacity is short, each rank lacks about as much") {
  const auto buffers = some_buffers();
  const std::int64_t total = bytes_at_rest(buffers);
  const ShareBy by = GENERATE(ShareBy::room, ShareBy::order);
  const std::vector<std::int64_t> capacities = {total / 2, total / 10, 0};
  const Counts counts = share_elements(buffers, capacities, by, kGranule);
  check_covered(buffers, counts, 3);
  const std::int64_t lacking = total - total / 2 - total / 10;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const std::int64_t over = held(buffers, counts, rank) - capacities[rank];
    CHECK(std::abs(over - lacking / 3) < 5 * kGranuleBytes);
  }
}
