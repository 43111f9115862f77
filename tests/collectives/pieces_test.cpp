#include "collectives/pieces.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <limits>

namespace sherd {

TEST_CASE("pieces cover a range once, in order, none above the limit") {
  const std::int64_t numel = GENERATE(0, 1, 2, 6, 7, 8, 100, 1001);
  const std::int64_t limit = GENERATE(1, 2, 7, 8, 1000, 5000);
  const Shard range{17, numel};
  std::int64_t next = range.offset;
  const std::int64_t count = count_pieces(numel, limit);
  for (std::int64_t i = 0; i < count; ++i) {
    const Shard piece = piece_of(range, i, limit);
    CHECK(piece.offset == next);
    CHECK(piece.numel > 0);
    CHECK(piece.numel <= limit);
    next = piece.end();
  }
  CHECK(next == range.end());
  CHECK(count == (numel == 0 ? 0 : (numel - 1) / limit + 1));
}

TEST_CASE("pieces past the end of a range are empty") {
  CHECK(piece_of({5, 10}, 3, 4) == Shard{15, 0});
  CHECK(piece_of({5, 10}, 1000, 4) == Shard{15, 0});
  CHECK(piece_of({5, 0}, 0, 4) == Shard{5, 0});
}

TEST_CASE("pieces of ranges beyond 2^31 and 2^40 keep their offsets") {
  constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMessage = std::int64_t{1} << 30;
  CHECK(count_pieces(kInt, kMessage) == 2);
  CHECK(count_pieces(kInt + 2, kMessage) == 3);
  constexpr Shard kHuge{(std::int64_t{1} << 40) + 3, (std::int64_t{1} << 42) + 1};
  CHECK(count_pieces(kHuge.numel, kMessage) == (std::int64_t{1} << 12) + 1);
  CHECK(piece_of(kHuge, std::int64_t{1} << 12, kMessage) == Shard{kHuge.end() - 1, 1});
  CHECK(piece_of(kHuge, 5000, kMessage) == Shard{kHuge.end(), 0});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(count_pieces(kMost, kMost) == 1);
  CHECK(piece_of({0, kMost}, 1, kMost) == Shard{kMost, 0});
}

TEST_CASE("even parts differ by one element at most and follow each other") {
  const std::int64_t numel = GENERATE(0, 1, 2, 3, 4, 5, 17, 1001, (std::int64_t{1} << 42) + 5);
  const int count = GENERATE(1, 2, 3, 4, 7);
  std::int64_t next = 0;
  for (int i = 0; i < count; ++i) {
    const Shard part = even_part(numel, count, i);
    CHECK(part.offset == next);
    CHECK(part.numel >= numel / count);
    CHECK(part.numel <= numel / count + 1);
    next = part.end();
  }
  CHECK(next == numel);
}

}  // namespace sherd
