#include "optim/clipping.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "core/error.h"
#include "tests/optim/fixture.h"

using namespace sherd;

TEST_CASE("gradients are clipped as PyTorch clips them") {
  for (const auto& c : test::cases_of("clipping.json")) {
    const double norm = c.at("norm"), max_norm = c.at("max_norm"), after = c.at("after");
    INFO("norm " << norm << ", max_norm " << max_norm);
    CHECK(std::abs(norm * clip_factor(norm, max_norm) - after) <= 1e-14 * after);
  }
}

TEST_CASE("clipping to 0 means not to clip, and a negative bound is refused") {
  CHECK(clip_factor(1e9, 0.0) == 1.0);
  CHECK(clip_factor(0.0, 1.0) == 1.0);
  CHECK_THROWS_AS(clip_factor(1.0, -1.0), ArgumentError);
  CHECK_THROWS_AS(clip_factor(1.0, std::nan("")), ArgumentError);
}
