#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace sherd {

/// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11): a pure
/// function of (key, counter), so that any rank can draw the numbers of any element. Inline, so
/// that loops over counters become vector code.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53u;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85u;
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c0;
    const std::uint64_t p1 = kMultiplier1 * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

/// Names an independent sequence: the run's seed and what the numbers are for.
struct RngKey {
  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;
};

/// Four words for block `block` of a sequence; element i of a sequence is word i % 4 of block i
/// / 4.
constexpr std::array<std::uint32_t, 4> random_words(RngKey key, std::uint64_t block) {
  return philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(key.sequence), static_cast<std::uint32_t>(key.sequence >> 32)},
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
}
/// What `uniform` makes of its word: the upper 24 bits, in [0, 1).
constexpr float unit_interval(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
/// Uniform in [0, 1) with 24 bits, for element `index` of the sequence.
float uniform(RngKey key, std::uint64_t index);
/// Standard normal by Box-Muller in double, for element `index` of the sequence.
float normal(RngKey key, std::uint64_t index);
/// values[i] = uniform(key, first + i), and normal(key, first + i): the same bits, each block of
/// random words and each pair of normals made once.
void fill_uniform(RngKey key, std::uint64_t first, std::span<float> values);
void fill_normal(RngKey key, std::uint64_t first, std::span<float> values);
/// Position `index` of a pseudo-random permutation of [0, count): a Feistel network walked until it
/// lands inside. `index` < `count`.
std::uint64_t permute(RngKey key, std::uint64_t index, std::uint64_t count);

}  // namespace sherd
