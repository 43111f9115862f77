#include "optim/schedule.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/optim/fixture.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using Type = ScheduleSpec::Type;

namespace {

Type type_of(const std::string& name) {
  if (name == "WarmupLR") return Type::warmup_lr;
  if (name == "WarmupDecayLR") return Type::warmup_decay_lr;
  if (name == "WarmupCosineLR") return Type::warmup_cosine_lr;
  REQUIRE(name == "OneCycle");
  return Type::one_cycle;
}

ScheduleSpec spec_of(const std::string& type, const nlohmann::json& params) {
  ScheduleSpec s{.type = type_of(type)};
  const auto set = [&](auto& field, const char* key) { field = params.value(key, field); };
  set(s.warmup_num_steps, "warmup_num_steps");
  set(s.total_num_steps, "total_num_steps");
  set(s.warmup_min_lr, "warmup_min_lr");
  set(s.warmup_max_lr, "warmup_max_lr");
  s.warmup_log = params.value("warmup_type", "log") == "log";
  set(s.warmup_min_ratio, "warmup_min_ratio");
  set(s.cos_min_ratio, "cos_min_ratio");
  set(s.cycle_min_lr, "cycle_min_lr");
  set(s.cycle_max_lr, "cycle_max_lr");
  set(s.decay_lr_rate, "decay_lr_rate");
  set(s.cycle_first_step_size, "cycle_first_step_size");
  set(s.cycle_second_step_size, "cycle_second_step_size");
  set(s.cycle_first_stair_count, "cycle_first_stair_count");
  s.cycle_second_stair_count = params.value("cycle_second_stair_count", s.cycle_first_stair_count);
  set(s.decay_step_size, "decay_step_size");
  set(s.cycle_momentum, "cycle_momentum");
  set(s.cycle_min_mom, "cycle_min_mom");
  set(s.cycle_max_mom, "cycle_max_mom");
  set(s.decay_mom_rate, "decay_mom_rate");
  return s;
}

bool close(double got, double want) {
  return std::abs(got - want) <= 1e-14 * std::abs(want) + 1e-18;
}

double rate(const ScheduleSpec& spec, std::int64_t step) {
  return scheduled_step(spec, 0.5, step).lr;
}

}  // namespace

TEST_CASE("DeepSpeed's schedules give DeepSpeed's rates and betas") {
  for (const auto& c : test::cases_of("schedules.json")) {
    INFO(c.at("type") << " " << c.at("params").dump());
    const ScheduleSpec spec = spec_of(c.at("type"), c.at("params"));
    validate(spec);
    const auto& rates = c.at("lr");
    for (std::size_t step = 0; step < rates.size(); ++step) {
      INFO("step " << step);
      const auto got = scheduled_step(spec, c.at("base_lr"), static_cast<std::int64_t>(step));
      const double want = rates[step];
      INFO("got " << got.lr << ", DeepSpeed has " << want);
      REQUIRE(close(got.lr, want));
      REQUIRE(got.betas.has_value() == c.contains("betas"));
      if (!got.betas) continue;
      REQUIRE(close(got.betas->beta1, c.at("betas")[step][0]));
      REQUIRE(close(got.betas->beta2, c.at("betas")[step][1]));
    }
  }
}

TEST_CASE("a constant rate stays, after its warm-up") {
  CHECK(rate({}, 0) == 0.5);
  CHECK(rate({}, 1'000'000'000) == 0.5);
  const ScheduleSpec warm{.warmup_num_steps = 4};
  for (int step = 0; step < 4; ++step) CHECK(close(rate(warm, step), 0.1 * (step + 1)));
  CHECK(rate(warm, 4) == 0.5);
  CHECK(rate(warm, 5) == 0.5);
}

TEST_CASE("linear and cosine start with the whole rate and end at min_lr") {
  for (const Type type : {Type::linear, Type::cosine}) {
    const ScheduleSpec spec{
        .type = type, .warmup_num_steps = 3, .total_num_steps = 11, .min_lr = 0.1};
    CHECK(close(rate(spec, 0), 0.125));
    CHECK(rate(spec, 3) == 0.5);
    CHECK(close(rate(spec, 7), 0.3));  // half way
    const double quarter = type == Type::linear ? 0.75 : (1 + std::sqrt(0.5)) / 2;
    CHECK(close(rate(spec, 5), 0.1 + 0.4 * quarter));
    CHECK(close(rate(spec, 11), 0.1));
    CHECK(close(rate(spec, 500), 0.1));
    for (int step = 3; step < 11; ++step) CHECK(rate(spec, step + 1) < rate(spec, step));
  }
}

TEST_CASE("a schedule as long as its warm-up ends right after it") {
  const ScheduleSpec spec{.type = Type::cosine, .warmup_num_steps = 5, .total_num_steps = 5};
  validate(spec);
  CHECK(rate(spec, 5) == 0.5);
  CHECK(close(rate(spec, 6), 0.0));
}

TEST_CASE("beta1 may not decay up to 1") {
  const ScheduleSpec spec{.type = Type::one_cycle,
                          .cycle_max_lr = 1e-3,
                          .cycle_first_step_size = 5,
                          .decay_step_size = 1,
                          .decay_mom_rate = 0.05};
  CHECK(scheduled_step(spec, 0.0, 12).betas->beta1 < 1.0);
  CHECK_THROWS_WITH(scheduled_step(spec, 0.0, 13),
                    ContainsSubstring("decay_mom_rate") && ContainsSubstring("step 13"));
}

TEST_CASE("schedules that can't be followed are refused by name") {
  const auto refuse = [](const ScheduleSpec& spec, const char* key) {
    CHECK_THROWS_WITH(validate(spec), ContainsSubstring(key));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refuse({.warmup_num_steps = -1}, "warmup_num_steps");
  refuse({.type = Type::linear}, "total_num_steps");
  refuse({.type = Type::cosine, .warmup_num_steps = 6, .total_num_steps = 5}, "total_num_steps");
  refuse({.type = Type::warmup_decay_lr, .warmup_num_steps = 6, .total_num_steps = 5}, "got 5");
  refuse({.type = Type::warmup_cosine_lr}, "total_num_steps");
  refuse({.type = Type::warmup_lr, .warmup_min_lr = -1e-3}, "warmup_min_lr");
  refuse({.type = Type::warmup_lr, .warmup_max_lr = nan}, "warmup_max_lr");
  refuse({.type = Type::linear, .total_num_steps = 5, .min_lr = -1}, "min_lr");
  refuse({.type = Type::warmup_cosine_lr, .total_num_steps = 5, .warmup_min_ratio = 2},
         "warmup_min_ratio");
  refuse({.type = Type::warmup_cosine_lr, .total_num_steps = 5, .cos_min_ratio = -1},
         "cos_min_ratio");
  const auto cycle = [&](auto change, const char* key) {
    ScheduleSpec spec{.type = Type::one_cycle};
    CHECK_NOTHROW(validate(spec));
    change(spec);
    refuse(spec, key);
  };
  cycle([](auto& s) { s.cycle_first_step_size = 0; }, "cycle_first_step_size");
  cycle([](auto& s) { s.cycle_second_step_size = -1; }, "cycle_second_step_size");
  cycle([](auto& s) { s.cycle_first_stair_count = -1; }, "cycle_first_stair_count");
  cycle([](auto& s) { s.cycle_second_stair_count = -1; }, "cycle_second_stair_count");
  cycle([](auto& s) { s.decay_step_size = -1; }, "decay_step_size");
  cycle([](auto& s) { s.cycle_min_lr = -1; }, "cycle_min_lr");
  cycle([=](auto& s) { s.cycle_max_lr = nan; }, "cycle_max_lr");
  cycle([](auto& s) { s.decay_lr_rate = -1; }, "decay_lr_rate");
  cycle([](auto& s) { s.decay_mom_rate = -1; }, "decay_mom_rate");
  cycle([](auto& s) { s.cycle_min_mom = -0.1; }, "cycle_min_mom");
  cycle([](auto& s) { s.cycle_max_mom = 1.0; }, "cycle_max_mom");
  CHECK_THROWS_AS(scheduled_step({}, 0.1, -1), ArgumentError);
}
