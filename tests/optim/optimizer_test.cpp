#include "optim/optimizer.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "core/cpu_stream.h"
#include "core/error.h"
#include "tests/optim/fixture.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;
using Type = OptimizerSpec::Type;

namespace {

OptimizerSpec spec_of(const std::string& type, const nlohmann::json& params) {
  OptimizerSpec s{.type = type == "sgd" ? Type::sgd : type == "adam" ? Type::adam : Type::adamw};
  const auto betas = params.value("betas", std::array<double, 2>{0.9, 0.999});
  s.lr = params.at("lr");
  s.beta1 = betas[0];
  s.beta2 = betas[1];
  s.epsilon = params.value("eps", s.epsilon);
  s.weight_decay = params.value("weight_decay", 0.0);
  s.momentum = params.value("momentum", 0.0);
  s.dampening = params.value("dampening", 0.0);
  s.nesterov = params.value("nesterov", false);
  return s;
}

Tensor view_of(Floats& x) { return {x.data(), DType::f32, {static_cast<std::int64_t>(x.size())}}; }

/// An f32 shard and what the optimizer keeps for it.
struct Trained {
  Trained(const OptimizerSpec& s, Floats start, std::int64_t decaying)
      : spec(s),
        value(std::move(start)),
        segments{{decaying, s.weight_decay}, {static_cast<std::int64_t>(value.size()), 0.0}} {
    for (const StateTensor& t : optimizer_state(spec)) {
      CHECK(t.dtype == DType::f32);
      state.emplace_back(value.size());
    }
  }
  void step(Floats gradient, std::int64_t index, double scale = 1.0, bool apply = true) {
    const UpdateScalars scalars = update_scalars(spec, {spec.lr, {}}, index, scale, apply);
    std::vector<Tensor> views;
    for (Floats& s : state) views.push_back(view_of(s));
    CpuStream stream("test");
    update_parameters(spec, {view_of(value), {}}, view_of(gradient), views, segments, &scalars,
                      stream);
    stream.synchronize();
  }

  OptimizerSpec spec;
  Floats value;
  std::vector<DecaySegment> segments;
  std::vector<Floats> state;
};

}  // namespace

TEST_CASE("ten steps of each optimizer give PyTorch's parameters") {
  for (const auto& c : test::cases_of("optimizers.json")) {
    INFO(c.at("type") << " " << c.at("params").dump());
    const OptimizerSpec spec = spec_of(c.at("type"), c.at("params"));
    validate(spec);
    Trained trained(spec, c.at("start").get<Floats>(), c.at("decaying"));
    for (std::size_t step = 0; step < 10; ++step) {
      trained.step(c.at("gradients")[step], static_cast<std::int64_t>(step));
      const Floats want = c.at("after")[step];
      for (std::size_t i = 0; i < want.size(); ++i) {
        INFO("step " << step << ", element " << i);
        const double steps = static_cast<double>(step) + 1;
        // Both sides round value and update a few times a step, in another order.
        const double tolerance = steps * 6 * 0x1p-24 * (std::abs(want[i]) + 20 * spec.lr);
        REQUIRE(std::abs(trained.value[i] - want[i]) <= tolerance);
      }
    }
  }
}

TEST_CASE("the gradient scale multiplies the gradient, and a step not applied changes nothing") {
  const OptimizerSpec spec{.lr = 0.1, .weight_decay = 0.1};
  Trained plain(spec, {1, 2, 3}, 2), scaled(spec, {1, 2, 3}, 2);
  plain.step({0.25, 0.5, 1}, 0);
  scaled.step({0.5, 1, 2}, 0, 0.5);
  CHECK(plain.value == scaled.value);
  CHECK(plain.state == scaled.state);
  scaled.step({INFINITY, NAN, 1}, 1, 0.5, false);
  CHECK(plain.value == scaled.value);
  CHECK(plain.state == scaled.state);
}

TEST_CASE("each optimizer names what it keeps") {
  CHECK(optimizer_state({}).size() == 2);
  CHECK(optimizer_state({})[0].name == "exp_avg");
  CHECK(optimizer_state({})[1].name == "exp_avg_sq");
  CHECK(optimizer_state({.type = Type::adam}).size() == 2);
  CHECK(optimizer_state({.type = Type::sgd}).empty());
  CHECK(optimizer_state({.type = Type::sgd, .momentum = 0.9})[0].name == "momentum_buffer");
}

TEST_CASE("the step's scalars follow optimizer and schedule") {
  const OptimizerSpec spec{.beta1 = 0.5, .beta2 = 0.75};
  const UpdateScalars first = update_scalars(spec, {0.25, {}}, 0, 2.0, true);
  CHECK(first.lr == 0.25);
  CHECK(first.gradient_scale == 2.0);
  CHECK(first.bias_correction1 == 0.5);
  CHECK(first.bias_correction2 == 0.25);
  CHECK(first.first_step == 1);
  CHECK(first.apply == 1);
  const UpdateScalars third = update_scalars(spec, {0.25, Betas{0.25, 0.5}}, 2, 1.0, false);
  CHECK(third.beta1 == 0.25);
  CHECK(third.beta2 == 0.5);
  CHECK(third.bias_correction1 == 1 - 0.25 * 0.25 * 0.25);
  CHECK(third.bias_correction2 == 0.875);
  CHECK(third.first_step == 0);
  CHECK(third.apply == 0);
  const OptimizerSpec uncorrected{.bias_correction = false};
  CHECK(update_scalars(uncorrected, {}, 0, 1.0, true).bias_correction1 == 1.0);
  CHECK(update_scalars(uncorrected, {}, 0, 1.0, true).bias_correction2 == 1.0);
}

TEST_CASE("optimizer settings that make no sense are refused by name") {
  const auto refuse = [](const OptimizerSpec& spec, const char* key) {
    CHECK_THROWS_WITH(validate(spec), ContainsSubstring(key));
  };
  CHECK_NOTHROW(validate(OptimizerSpec{}));
  refuse({.lr = -1}, "lr");
  refuse({.lr = NAN}, "lr");
  refuse({.beta1 = 1.0}, "beta1");
  refuse({.beta2 = -0.1}, "beta2");
  refuse({.epsilon = -1}, "eps");
  refuse({.weight_decay = -1}, "weight_decay");
  refuse({.type = Type::sgd, .momentum = -1}, "momentum");
  refuse({.type = Type::sgd, .momentum = 0.9, .dampening = INFINITY}, "dampening");
  refuse({.type = Type::sgd, .momentum = 0.9, .dampening = 0.1, .nesterov = true}, "nesterov");
  refuse({.type = Type::sgd, .nesterov = true}, "nesterov");
}

TEST_CASE("an update with another number of state tensors is refused") {
  Trained trained({}, {1, 2}, 1);
  trained.state.pop_back();
  CHECK_THROWS_WITH(trained.step({1, 2}, 0), ContainsSubstring("keeps 2 state tensors, got 1"));
}
