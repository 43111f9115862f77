#include "core/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace sherd {

float uniform(RngKey key, std::uint64_t index) {
  return unit_interval(random_words(key, index / 4)[index % 4]);
}

float normal(RngKey key, std::uint64_t index) {
  const auto words = random_words(key, index / 4);
  const std::size_t pair = index % 4 / 2 * 2;
  const double u1 = (static_cast<double>(words[pair]) + 1.0) * 0x1p-32;  // (0, 1]
  const double angle = static_cast<double>(words[pair + 1]) * 0x1p-32 * 2.0 * std::numbers::pi;
  const double radius = std::sqrt(-2.0 * std::log(u1));
  return static_cast<float>(radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)));
}

std::uint64_t permute(RngKey key, std::uint64_t index, std::uint64_t count) {
  require(index < count, "index {} is outside a permutation of {}", index, count);
  const int half_bits = (static_cast<int>(std::bit_width(count - 1)) + 1) / 2;
  const std::uint64_t half_mask = (std::uint64_t{1} << half_bits) - 1;
  constexpr int kFeistelRounds = 4;
  do {
    std::uint64_t left = index >> half_bits;
    std::uint64_t right = index & half_mask;
    for (std::uint64_t round = 0; round < kFeistelRounds; ++round) {
      const auto words = random_words(key, (right << 2) | round);
      left ^= ((std::uint64_t{words[1]} << 32) | words[0]) & half_mask;
      std::swap(left, right);
    }
    index = (left << half_bits) | right;
  } while (index >= count);
  return index;
}

}  // namespace sherd
