#include "optim/loss_scaler.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "core/error.h"
#include "tests/optim/fixture.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

LossScalerSpec spec_of(const nlohmann::json& j) {
  return {.initial_scale_power = j.at("initial_scale_power"),
          .loss_scale_window = j.at("loss_scale_window"),
          .hysteresis = j.at("hysteresis"),
          .consecutive_hysteresis = j.at("consecutive_hysteresis"),
          .min_loss_scale = j.at("min_loss_scale")};
}

}  // namespace

TEST_CASE("the dynamic scale moves as DeepSpeed's, also when restored in between") {
  for (const auto& c : test::cases_of("loss_scaler.json")) {
    INFO(c.at("spec").dump());
    const LossScalerSpec spec = spec_of(c.at("spec"));
    LossScaler scaler(spec);
    const auto& scales = c.at("scales");
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (i % 3 == 1) {
        LossScaler resumed(spec);
        resumed.restore(scaler.state());
        scaler = resumed;
      }
      scaler.update(c.at("overflows")[i]);
      REQUIRE(scaler.scale() == scales[i]);
      REQUIRE(scaler.state().hysteresis == c.at("hysteresis")[i]);
    }
    if (c.at("ended")) CHECK_THROWS_AS(scaler.update(true), NonFiniteError);
  }
}

TEST_CASE("at the floor an overflow ends the run and says what to do") {
  LossScaler scaler({.initial_scale_power = 1, .hysteresis = 1});
  scaler.update(true);
  CHECK(scaler.scale() == 1.0);
  CHECK_THROWS_WITH(scaler.update(true), ContainsSubstring("min_loss_scale") &&
                                             ContainsSubstring("lower the learning rate"));
  CHECK(scaler.scale() == 1.0);
}

TEST_CASE("a static scale stays, whatever happens") {
  LossScaler scaler({.loss_scale = 128.0, .loss_scale_window = 1, .hysteresis = 1});
  for (int i = 0; i < 10; ++i) scaler.update(i % 2 == 0);
  CHECK(scaler.scale() == 128.0);
  CHECK(scaler.state().step == 10);
  LossScaler other({.loss_scale = 64.0});
  other.restore(scaler.state());
  CHECK(other.scale() == 64.0);
}

TEST_CASE("a state that no scaler was ever in is refused") {
  LossScaler scaler({});
  const LossScaler::State good{.scale = 8, .hysteresis = 1, .step = 3, .last_overflow = 2};
  CHECK_NOTHROW(scaler.restore(good));
  CHECK(scaler.state() == good);
  const auto refuse = [&](auto change) {
    LossScaler::State bad = good;
    change(bad);
    CHECK_THROWS_AS(scaler.restore(bad), ArgumentError);
  };
  refuse([](auto& s) { s.scale = 0; });
  refuse([](auto& s) { s.scale = std::nan(""); });
  refuse([](auto& s) { s.hysteresis = 0; });
  refuse([](auto& s) { s.step = -1; });
  refuse([](auto& s) { s.last_overflow = 3; });
  refuse([](auto& s) { s.last_overflow = -2; });
  CHECK(scaler.state() == good);
}

TEST_CASE("settings of the loss scale that make no sense are refused by name") {
  const auto refuse = [](const LossScalerSpec& spec, const char* key) {
    CHECK_THROWS_WITH(LossScaler(spec), ContainsSubstring(key));
  };
  refuse({.loss_scale = -1}, "loss_scale");
  refuse({.loss_scale = std::nan("")}, "loss_scale");
  refuse({.initial_scale_power = -1}, "initial_scale_power");
  refuse({.initial_scale_power = 127}, "initial_scale_power");
  refuse({.loss_scale_window = 0}, "loss_scale_window");
  refuse({.hysteresis = 0}, "hysteresis");
  refuse({.min_loss_scale = 0}, "min_loss_scale");
  refuse({.initial_scale_power = 3, .min_loss_scale = 16}, "min_loss_scale");
  CHECK_NOTHROW(LossScaler({.loss_scale = 2, .initial_scale_power = 3, .min_loss_scale = 16}));
}
