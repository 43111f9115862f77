#include "core/rng.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "core/error.h"

using namespace sherd;
using Words = std::array<std::uint32_t, 4>;

namespace {

RngKey fresh_key() {
  std::random_device device;
  return {(std::uint64_t{device()} << 32) | device(), device()};
}

}  // namespace

TEST_CASE("Philox4x32-10 gives Random123's published answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kAll = 0xffffffff;
  CHECK(philox({kAll, kAll, kAll, kAll}, {kAll, kAll}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("block, sequence and seed all reach the counter and the key whole") {
  const std::uint64_t high = std::uint64_t{1} << 32;
  const Words zero = random_words({0, 0}, 0);
  CHECK(zero == philox({0, 0, 0, 0}, {0, 0}));
  CHECK(random_words({0, 0}, 5 * high + 3) == philox({3, 5, 0, 0}, {0, 0}));
  CHECK(random_words({0, 7 * high + 2}, 0) == philox({0, 0, 2, 7}, {0, 0}));
  CHECK(random_words({9 * high + 4, 0}, 0) == philox({0, 0, 0, 0}, {4, 9}));
}

TEST_CASE("element i of a sequence is word i % 4 of block i / 4") {
  const RngKey key = fresh_key();
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::uint32_t word = random_words(key, i / 4)[i % 4];
    CHECK(uniform(key, i) == static_cast<float>(word >> 8) / 16777216.0f);
  }
}

TEST_CASE("the unit interval excludes 1") {
  CHECK(unit_interval(0) == 0.0f);
  CHECK(unit_interval(0xffffffffu) < 1.0f);
  CHECK(unit_interval(0x80000000u) == 0.5f);
}

TEST_CASE("uniform numbers have a uniform's moments") {
  const RngKey key = fresh_key();
  INFO("seed " << key.seed << " sequence " << key.sequence);
  constexpr std::uint64_t kCount = 400000;
  double sum = 0, squares = 0, products = 0, previous = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double u = uniform(key, i) - 0.5;
    sum += u;
    squares += u * u;
    products += u * previous;
    previous = u;
  }
  const double root = std::sqrt(static_cast<double>(kCount));
  CHECK(std::abs(sum / kCount) < 6 * std::sqrt(1.0 / 12) / root);
  CHECK(std::abs(squares / kCount - 1.0 / 12) < 6 * std::sqrt(1.0 / 180) / root);
  CHECK(std::abs(products / kCount) < 6.0 / 12 / root);
}

TEST_CASE("normal numbers have a normal's moments and tails") {
  const RngKey key = fresh_key();
  INFO("seed " << key.seed << " sequence " << key.sequence);
  constexpr std::uint64_t kCount = 400000;
  std::array<double, 5> moment{};
  double beyond2 = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double x = normal(key, i);
    double power = 1;
    for (double& m : moment) {
      m += power / kCount;
      power *= x;
    }
    beyond2 += std::abs(x) > 2 ? 1.0 / kCount : 0;
  }
  const double root = std::sqrt(static_cast<double>(kCount));
  CHECK(std::abs(moment[1]) < 6 * 1 / root);
  CHECK(std::abs(moment[2] - 1) < 6 * std::sqrt(2.0) / root);
  CHECK(std::abs(moment[3]) < 6 * std::sqrt(15.0) / root);
  CHECK(std::abs(moment[4] - 3) < 6 * std::sqrt(96.0) / root);
  CHECK(std::abs(beyond2 - 0.0455003) < 6 * std::sqrt(0.0455 * 0.9545) / root);
}

TEST_CASE("a filled span has the bits of its elements, wherever it starts and ends") {
  const RngKey key = fresh_key();
  const std::uint64_t first = GENERATE(0u, 1u, 2u, 3u, 4u, 7u, (std::uint64_t{1} << 34) - 5);
  const std::size_t numel = GENERATE(0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10007u);
  INFO("seed " << key.seed << " sequence " << key.sequence << " first " << first << ' ' << numel);
  constexpr float kPoison = -77.0f;
  std::vector<float> uniforms(numel + 1, kPoison);
  std::vector<float> normals(numel + 1, kPoison);
  fill_uniform(key, first, std::span(uniforms).first(numel));
  fill_normal(key, first, std::span(normals).first(numel));
  bool same = true;
  for (std::size_t i = 0; i < numel; ++i) {
    same = same && uniforms[i] == uniform(key, first + i) && normals[i] == normal(key, first + i);
  }
  CHECK(same);
  CHECK(uniforms[numel] == kPoison);
  CHECK(normals[numel] == kPoison);
}

TEST_CASE("normal numbers are Box and Muller's") {
  const RngKey key = fresh_key();
  INFO("seed " << key.seed << " sequence " << key.sequence);
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const Words words = random_words(key, i / 4);
    const std::size_t pair = i % 4 / 2 * 2;
    const double u = (words[pair] + 1.0) / 4294967296.0;
    const double angle = words[pair + 1] / 4294967296.0 * 2 * std::acos(-1.0);
    const double factor = i % 2 == 0 ? std::cos(angle) : std::sin(angle);
    REQUIRE(normal(key, i) == static_cast<float>(std::sqrt(-2 * std::log(u)) * factor));
  }
}

TEST_CASE("a permutation hits every position once") {
  const std::uint64_t count = GENERATE(1u, 2u, 3u, 4u, 5u, 255u, 256u, 257u, 1000u, 4097u);
  const RngKey key = fresh_key();
  INFO("seed " << key.seed << " sequence " << key.sequence << " count " << count);
  std::vector<int> hits(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t to = permute(key, i, count);
    REQUIRE(to < count);
    ++hits[to];
  }
  CHECK(hits == std::vector<int>(count, 1));
}

TEST_CASE("permutations move things, and other keys move them elsewhere") {
  const RngKey key = fresh_key();
  const RngKey next{key.seed, key.sequence + 1};
  constexpr std::uint64_t kCount = 4097;
  double fixed = 0, same = 0, distance = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint64_t to = permute(key, i, kCount);
    fixed += to == i ? 1 : 0;
    same += to == permute(next, i, kCount) ? 1 : 0;
    distance += std::abs(static_cast<double>(to) - static_cast<double>(i)) / kCount;
  }
  CHECK(fixed < 15);  // one is expected
  CHECK(same < 15);
  CHECK(std::abs(distance / kCount - 1.0 / 3) < 0.03);
}

TEST_CASE("permutations of very large counts stay inside") {
  const RngKey key = fresh_key();
  for (const std::uint64_t count :
       {(std::uint64_t{1} << 32) + 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    CHECK(permute(key, 0, count) < count);
    CHECK(permute(key, count - 1, count) < count);
  }
}

TEST_CASE("an index outside a permutation is refused") {
  CHECK_THROWS_WITH(permute({1, 2}, 5, 5), Catch::Matchers::ContainsSubstring("index 5"));
  CHECK_THROWS_AS(permute({1, 2}, 0, 0), ArgumentError);
}
