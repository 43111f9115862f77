#pragma once

#include <array>
#include <cstdint>

namespace sherd {

/// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11): a pure
/// function of (key, counter), so that any rank can draw the numbers of any element.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// Names an independent sequence: the run's seed and what the numbers are for.
struct RngKey {
  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;
};

/// Four words for block `block` of a sequence; element i of a sequence is word i % 4 of block i
/// / 4.
std::array<std::uint32_t, 4> random_words(RngKey key, std::uint64_t block);
/// What `uniform` makes of its word: the upper 24 bits, in [0, 1).
constexpr float unit_interval(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
/// Uniform in [0, 1) with 24 bits, for element `index` of the sequence.
float uniform(RngKey key, std::uint64_t index);
/// Standard normal by Box-Muller in double, for element `index` of the sequence.
float normal(RngKey key, std::uint64_t index);
/// Position `index` of a pseudo-random permutation of [0, count): a Feistel network walked until it
/// lands inside. `index` < `count`.
std::uint64_t permute(RngKey key, std::uint64_t index, std::uint64_t count);

}  // namespace sherd
