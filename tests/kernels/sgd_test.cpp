#include "kernels/sgd.h"

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

constexpr double kLr = 0.05, kScale = 0.5;

UpdateScalars scalars_of(int step) {
  return {.lr = kLr, .gradient_scale = kScale, .first_step = step == 0 ? 1 : 0};
}

template <class T>
void step(ShardAtRest<T>& shard, const std::vector<Shard>& cuts,
          const std::vector<DecaySegment>& segments, const SgdSpec& spec,
          const UpdateScalars& scalars, int threads = 2) {
  std::vector<std::vector<DecaySegment>> kept;
  kept.reserve(cuts.size());
  for (const Shard& c : cuts) kept.push_back(cut(segments, c));
  run(
      [&](Stream& s) {
        for (std::size_t i = 0; i < cuts.size(); ++i) {
          const Tensor momentum =
              spec.momentum == 0.0 ? Tensor{} : view_of(shard.first).flat(cuts[i]);
          sgd_update(shard.parameters(cuts[i]), view_of(shard.gradient).flat(cuts[i]), momentum,
                     kept[i].data(), static_cast<int>(kept[i].size()), spec, &scalars, s);
        }
        s.synchronize();
      },
      threads);
}

/// PyTorch's SGD in double.
struct Oracle {
  std::vector<double> w, buffer;

  void step(const std::vector<float>& gradient, const std::vector<DecaySegment>& segments,
            const SgdSpec& spec, bool first) {
    std::size_t segment = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      while (static_cast<std::int64_t>(i) >= segments[segment].end) ++segment;
      double g = gradient[i] * kScale + segments[segment].weight_decay * w[i];
      if (spec.momentum != 0) {
        buffer[i] = first ? g : spec.momentum * buffer[i] + (1 - spec.dampening) * g;
        g = spec.nesterov ? g + spec.momentum * buffer[i] : buffer[i];
      }
      w[i] -= kLr * g;
    }
  }
};

}  // namespace

TEMPLATE_TEST_CASE("ten steps follow SGD in double", "", float, bf16, f16) {
  Random random;
  const SgdSpec spec = GENERATE(SgdSpec{}, SgdSpec{0.9, 0.0, false}, SgdSpec{0.9, 0.3, false},
                                SgdSpec{0.8, 0.0, true});
  const std::int64_t n = GENERATE(1, 33, 20001);
  const std::vector<DecaySegment> segments = {{n / 3, 0.1}, {n - n / 4, 0.0}, {n, 0.02}};
  ShardAtRest<TestType> shard(random_floats(random, n, 1.0));
  shard.first.assign(shard.first.size(), std::nanf(""));  // the first step doesn't read it
  const auto start = shard.masters();
  Oracle oracle{{start.begin(), start.end()}, std::vector<double>(start.size())};
  for (int t = 0; t < 10; ++t) {
    shard.gradient = random_floats(random, n, 1.0);
    step(shard, {{0, n}}, segments, spec, scalars_of(t));
    oracle.step(shard.gradient, segments, spec, t == 0);
  }
  const auto masters = shard.masters();
  for (std::size_t i = 0; i < masters.size(); ++i) {
    // Values are within 3 and momenta within 5, and each step rounds both a few times.
    check_within(masters[i], oracle.w[i], 10 * 8 * 0x1p-24 * 3);
    if (spec.momentum != 0) {
      check_within(shard.first[i], oracle.buffer[i], 10 * 8 * 0x1p-24 * 5);
    }
    const double value = static_cast<float>(shard.value[i]);
    check_within(value, masters[i],
                 1.001 * rounding_of(dtype_of<TestType>()) * std::abs(masters[i]) + 1e-7);
  }
}

TEMPLATE_TEST_CASE("SGD has the same bits however the shard is cut, and skips whole", "", float,
                   bf16, f16) {
  Random random;
  std::mt19937_64 engine(Catch::getSeed());
  constexpr std::int64_t kNumel = 50021;
  const SgdSpec spec = GENERATE(SgdSpec{}, SgdSpec{0.9, 0.1, false});
  const auto masters = random_floats(random, kNumel, 1.0);
  ShardAtRest<TestType> whole(masters), parts(masters);
  const std::vector<DecaySegment> segments = {{20011, 0.1}, {kNumel, 0.0}};
  for (int t = 0; t < 3; ++t) {
    whole.gradient = parts.gradient = random_floats(random, kNumel, 1.0);
    step(whole, {{0, kNumel}}, segments, spec, scalars_of(t), 1);
    step(parts, random_cuts(engine, kNumel), segments, spec, scalars_of(t), 3);
  }
  CHECK(whole.same_bits_as(parts));
  UpdateScalars skipped = scalars_of(3);
  skipped.apply = 0;
  whole.gradient.assign(kNumel, std::nanf(""));
  step(whole, {{0, kNumel}}, segments, spec, skipped);
  CHECK(whole.same_bits_as(parts));
}

TEST_CASE("sgd_update takes empty shards and refuses wrong operands") {
  CpuStream stream("test");
  std::vector<float> f(3), four(4), none;
  const DecaySegment segment{3, 0.0};
  const UpdateScalars scalars;
  const auto call = [&](const Tensor& gradient, const Tensor& momentum, const SgdSpec& spec) {
    sgd_update({view_of(f), {}}, gradient, momentum, &segment, 1, spec, &scalars, stream);
  };
  CHECK_NOTHROW(call(view_of(f), {}, {}));
  CHECK_THROWS_WITH(call(view_of(four), {}, {}), ContainsSubstring("sgd_update"));
  CHECK_THROWS_WITH(call(view_of(f), view_of(four), {0.9, 0.0, false}),
                    ContainsSubstring("momentum is f32 [4]"));
  CHECK_THROWS_WITH(call(view_of(f), {}, {0.9, 0.0, false}), ContainsSubstring("needs a momentum"));
  CHECK_THROWS_WITH(call(view_of(f), view_of(f), {}), ContainsSubstring("takes no momentum"));
  CHECK_THROWS_WITH(call(view_of(f), view_of(f), {0.9, 0.1, true}), ContainsSubstring("Nesterov"));
  CHECK_THROWS_WITH(call(view_of(f), {}, {0.0, 0.0, true}), ContainsSubstring("Nesterov"));
  CHECK_THROWS_AS(sgd_update({view_of(f), {}}, view_of(f), {}, nullptr, 0, {}, &scalars, stream),
                  ArgumentError);
  CHECK_NOTHROW(
      sgd_update({view_of(none), {}}, view_of(none), {}, nullptr, 0, {}, &scalars, stream));
  stream.synchronize();  // before what it works on goes
}
