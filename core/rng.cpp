#include "core/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace sherd {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53u;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
constexpr int kRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t p1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

std::array<std::uint32_t, 4> random_words(RngKey key, std::uint64_t block) {
  return philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(key.sequence), static_cast<std::uint32_t>(key.sequence >> 32)},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}

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
