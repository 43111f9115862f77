#include "core/rng.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace sherd {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// The two normals of two words.
std::array<float, 2> box_muller(std::uint32_t first, std::uint32_t second) {
  const double u1 = (static_cast<double>(first) + 1.0) * 0x1p-32;  // (0, 1]
  const double angle = static_cast<double>(second) * 0x1p-32 * 2.0 * std::numbers::pi;
  const double radius = std::sqrt(-2.0 * std::log(u1));
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

/// `numbers` makes the four numbers of a block of words.
template <class F>
void fill_by_blocks(RngKey key, std::uint64_t first, std::span<float> values, const F& numbers) {
  constexpr std::uint64_t kWords = 4;
  for (std::size_t done = 0; done < values.size();) {
    const std::uint64_t index = first + done;
    const std::array<float, kWords> block = numbers(random_words(key, index / kWords));
    const std::size_t skipped = index % kWords;
    const std::size_t count = std::min(block.size() - skipped, values.size() - done);
    std::copy_n(block.begin() + skipped, count, values.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

}  // namespace

float uniform(RngKey key, std::uint64_t index) {
  return unit_interval(random_words(key, index / 4)[index % 4]);
}

float normal(RngKey key, std::uint64_t index) {
  const Words words = random_words(key, index / 4);
  const std::size_t pair = index % 4 / 2 * 2;
  return box_muller(words[pair], words[pair + 1])[index % 2];
}

void fill_uniform(RngKey key, std::uint64_t first, std::span<float> values) {
  fill_by_blocks(key, first, values, [](const Words& w) {
    return std::array{unit_interval(w[0]), unit_interval(w[1]), unit_interval(w[2]),
                      unit_interval(w[3])};
  });
}

void fill_normal(RngKey key, std::uint64_t first, std::span<float> values) {
  fill_by_blocks(key, first, values, [](const Words& w) {
    const auto [n0, n1] = box_muller(w[0], w[1]);
    const auto [n2, n3] = box_muller(w[2], w[3]);
    return std::array{n0, n1, n2, n3};
  });
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
