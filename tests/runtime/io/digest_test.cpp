#include "runtime/io/digest.h"

#include <catch2/catch_test_macros.hpp>
#include <set>
#include <vector>

#include "core/error.h"

namespace sherd {

TEST_CASE("digests are XXH3's, the same on every machine", "[io]") {
  CHECK(digest(nullptr, 0) == 0x2d06800538d394c2ull);  // the published digest of nothing
  CHECK(digest("", 0) == digest(nullptr, 0));
}

TEST_CASE("every bit and the seed count in a digest", "[io]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{17}, std::size_t{300}}) {
    std::vector<unsigned char> bytes(size, 0x5A);
    const auto count = static_cast<std::int64_t>(size);
    std::set<std::uint64_t> seen = {digest(bytes.data(), count), digest(bytes.data(), count, 1)};
    for (std::size_t bit = 0; bit < size * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
      seen.insert(digest(bytes.data(), count));
      bytes[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
    }
    CHECK(seen.size() == size * 8 + 2);
  }
}

TEST_CASE("a negative size has no digest", "[io]") {
  CHECK_THROWS_AS(digest("x", -1), ArgumentError);
}

}  // namespace sherd
