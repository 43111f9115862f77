#include "apps/sampler.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"

using namespace sherd;

TEST_CASE("temperature 0 takes the likeliest token, of equals the first") {
  Sampler sampler({.temperature = 0.0});
  const std::vector<float> logits = {0.5f, 2.0f, 2.0f, -1.0f};
  for (int i = 0; i < 5; ++i) CHECK(sampler.draw(logits) == 1);
}

TEST_CASE("draws follow the softmax") {
  Sampler sampler({.temperature = 2.0, .top_k = 0, .seed = 7});
  const std::vector<float> logits = {0.0f, 2.0f * std::log(3.0f)};  // odds 1 to 3
  constexpr int kDraws = 20000;
  int second = 0;
  for (int i = 0; i < kDraws; ++i) second += sampler.draw(logits);
  const double deviation = std::sqrt(kDraws * 0.75 * 0.25);
  CHECK(std::abs(second - 0.75 * kDraws) < 5 * deviation);
}

TEST_CASE("top-k draws among the likeliest alone") {
  Sampler sampler({.temperature = 50.0, .top_k = 2});
  std::set<std::int32_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(sampler.draw(std::vector<float>{0, 3, 1, 2, -4}));
  CHECK(seen == std::set<std::int32_t>{1, 3});
}

TEST_CASE("the seed decides the draws") {
  const std::vector<float> logits(64, 0.0f);
  const auto draws = [&](std::uint64_t seed) {
    Sampler sampler({.temperature = 1.0, .top_k = 0, .seed = seed});
    std::vector<std::int32_t> tokens(50);
    for (std::int32_t& token : tokens) token = sampler.draw(logits);
    return tokens;
  };
  CHECK(draws(3) == draws(3));
  CHECK(draws(3) != draws(4));
}

TEST_CASE("what cannot be sampled is refused") {
  CHECK_THROWS_AS(Sampler({.temperature = -0.1}), ArgumentError);
  CHECK_THROWS_AS(Sampler({.temperature = 1.0, .top_k = -1}), ArgumentError);
  Sampler sampler({});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(sampler.draw(std::vector<float>{nan, nan}), DataError);
}
