#include "kernels/adamw.h"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "tests/kernels/shard_at_rest.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kLr = 3e-3, kScale = 0.37;

UpdateScalars scalars_of(int step) {
  return {.lr = kLr,
          .gradient_scale = kScale,
          .bias_correction1 = 1 - std::pow(0.9, step + 1),
          .bias_correction2 = 1 - std::pow(0.999, step + 1)};
}

template <class T>
void step(ShardAtRest<T>& shard, const std::vector<Shard>& cuts,
          const std::vector<DecaySegment>& segments, const AdamWSpec& spec,
          const UpdateScalars& scalars, int threads = 2) {
  std::vector<std::vector<DecaySegment>> kept;
  kept.reserve(cuts.size());
  for (const Shard& c : cuts) kept.push_back(cut(segments, c));
  run(
      [&](Stream& s) {
        for (std::size_t i = 0; i < cuts.size(); ++i) {
          adamw_update(shard.parameters(cuts[i]), view_of(shard.gradient).flat(cuts[i]),
                       view_of(shard.first).flat(cuts[i]), view_of(shard.second).flat(cuts[i]),
                       kept[i].data(), static_cast<int>(kept[i].size()), spec, &scalars, s);
        }
        s.synchronize();
      },
      threads);
}

/// PyTorch's AdamW, and its Adam with weight_decay, in double.
struct Oracle {
  std::vector<double> w, m, v;

  void step(const std::vector<float>& gradient, const std::vector<DecaySegment>& segments,
            const AdamWSpec& spec, int t) {
    std::size_t segment = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      while (static_cast<std::int64_t>(i) >= segments[segment].end) ++segment;
      const double decay = segments[segment].weight_decay;
      double g = gradient[i] * kScale;
      if (spec.decoupled_decay) {
        w[i] *= 1 - kLr * decay;
      } else {
        g += decay * w[i];
      }
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      const double m_hat = m[i] / (1 - std::pow(0.9, t)), v_hat = v[i] / (1 - std::pow(0.999, t));
      w[i] -= kLr * m_hat / (std::sqrt(v_hat) + spec.epsilon);
    }
  }
};

}  // namespace

TEMPLATE_TEST_CASE("ten steps follow AdamW and Adam in double", "", float, bf16, f16) {
  Random random;
  const bool decoupled = GENERATE(true, false);
  const std::int64_t n = GENERATE(1, 33, 20001);
  const AdamWSpec spec{1e-8, decoupled};
  const std::vector<DecaySegment> segments = {
      {n / 3, 0.1}, {n / 3, 9.0}, {n - n / 4, 0.0}, {n, 0.02}};
  ShardAtRest<TestType> shard(random_floats(random, n, 1.0));
  const auto start = shard.masters();
  Oracle oracle{{start.begin(), start.end()},
                std::vector<double>(start.size()),
                std::vector<double>(start.size())};
  for (int t = 1; t <= 10; ++t) {
    shard.gradient = random_floats(random, n, 0.1);
    step(shard, {{0, n}}, segments, spec, scalars_of(t - 1));
    oracle.step(shard.gradient, segments, spec, t);
  }
  const auto masters = shard.masters();
  for (std::size_t i = 0; i < masters.size(); ++i) {
    // Each step rounds the master a few times, and its update (of about lr) a few times more.
    const double tolerance = 10 * (3 * 0x1p-24 * std::abs(oracle.w[i]) + kLr * 32 * 0x1p-24);
    check_within(masters[i], oracle.w[i], tolerance);
    check_within(shard.first[i], oracle.m[i], 1e-7);
    check_within(shard.second[i], oracle.v[i], 1e-5 * oracle.v[i] + 1e-12);
    const double value = static_cast<float>(shard.value[i]);
    check_within(value, masters[i],
                 1.001 * rounding_of(dtype_of<TestType>()) * std::abs(masters[i]) + 1e-7);
  }
}

TEST_CASE("epsilon is added to the corrected root, as in PyTorch") {
  ShardAtRest<float> shard({1.0f});
  shard.gradient = {2.0f};
  const UpdateScalars scalars{.lr = 0.1, .bias_correction1 = 0.1, .bias_correction2 = 0.001};
  step(shard, {{0, 1}}, {{1, 0.0}}, {.epsilon = 3.0}, scalars);
  CHECK(std::abs(shard.value[0] - (1.0 - 0.1 * 2.0 / (2.0 + 3.0))) < 1e-6);
}

TEST_CASE("moving betas are read from the scalars") {
  ShardAtRest<float> shard({1.0f});
  shard.gradient = {1.0f};
  step(shard, {{0, 1}}, {{1, 0.0}}, {}, {.lr = 0.1, .beta1 = 0.75, .beta2 = 0.5});
  CHECK(shard.first[0] == 0.25f);
  CHECK(shard.second[0] == 0.5f);
}

TEMPLATE_TEST_CASE("updates have the same bits however the shard is cut, on any threads", "", float,
                   bf16, f16) {
  Random random;
  std::mt19937_64 engine(Catch::getSeed());
  constexpr std::int64_t kNumel = 70003;
  const auto masters = random_floats(random, kNumel, 1.0);
  ShardAtRest<TestType> whole(masters), parts(masters);
  const std::vector<DecaySegment> segments = {{20011, 0.1}, {20012, 0.0}, {kNumel, 0.01}};
  for (int t = 0; t < 3; ++t) {
    whole.gradient = parts.gradient = random_floats(random, kNumel, 1.0);
    step(whole, {{0, kNumel}}, segments, {}, scalars_of(t), 1);
    step(parts, random_cuts(engine, kNumel), segments, {}, scalars_of(t), 3);
  }
  CHECK(whole.same_bits_as(parts));
}

TEMPLATE_TEST_CASE("a skipped step writes nothing, whatever its gradient", "", float, bf16, f16) {
  Random random;
  ShardAtRest<TestType> shard(random_floats(random, 1001, 1.0));
  shard.gradient = random_floats(random, 1001, 1.0);
  step(shard, {{0, 1001}}, {{1001, 0.1}}, {}, scalars_of(0));
  const ShardAtRest<TestType> before = shard;
  shard.gradient.assign(1001, std::nanf(""));
  UpdateScalars scalars = scalars_of(1);
  scalars.apply = 0;
  step(shard, {{0, 1001}}, {{1001, 0.1}}, {}, scalars);
  CHECK(shard.same_bits_as(before));
}

TEST_CASE("adamw_update takes empty shards and refuses wrong operands") {
  CpuStream stream("test");
  std::vector<float> f(3), four(4), none;
  std::vector<bf16> b(3);
  const DecaySegment segment{3, 0.0};
  const UpdateScalars scalars;
  const auto call = [&](std::vector<float>& g, std::vector<float>& m, std::vector<float>& v,
                        const DecaySegment* s, int count, const UpdateScalars* u) {
    adamw_update({view_of(f), {}}, view_of(g), view_of(m), view_of(v), s, count, {}, u, stream);
  };
  CHECK_NOTHROW(call(f, f, f, &segment, 1, &scalars));
  CHECK_THROWS_WITH(call(four, f, f, &segment, 1, &scalars), ContainsSubstring("adamw_update"));
  CHECK_THROWS_WITH(call(f, four, f, &segment, 1, &scalars), ContainsSubstring("first moment"));
  CHECK_THROWS_WITH(call(f, f, four, &segment, 1, &scalars), ContainsSubstring("second moment"));
  CHECK_THROWS_WITH(call(f, f, f, nullptr, 0, &scalars), ContainsSubstring("segments"));
  CHECK_THROWS_WITH(call(f, f, f, &segment, 1, nullptr), ContainsSubstring("scalars"));
  CHECK_THROWS_AS(adamw_update({view_of(b), {}}, view_of(f), view_of(f), view_of(f), &segment, 1,
                               {}, &scalars, stream),
                  ArgumentError);
  CHECK_NOTHROW(adamw_update({view_of(none), {}}, view_of(none), view_of(none), view_of(none),
                             nullptr, 0, {}, &scalars, stream));
  stream.synchronize();
  const DecaySegment short_segment{2, 0.0};
  call(f, f, f, &short_segment, 1, &scalars);
  CHECK_THROWS_WITH(stream.synchronize(), ContainsSubstring("segments end at 2"));
}
