#include "kernels/rope.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::RopeSize;

namespace {

RopeSpec any_spec() {
  using Scaling = RopeSpec::Scaling;
  RopeSpec spec;
  spec.scaling = GENERATE(Scaling::none, Scaling::linear, Scaling::llama3);
  if (spec.scaling != Scaling::none) spec.factor = 8.0;
  // So few original positions that heads of 32 have low, blended and high frequencies.
  spec.original_max_positions = 512;
  return spec;
}

constexpr RopeSize kSizes[] = {{0, 3, 2, 4, 0, 2},   {1, 1, 1, 2, 0, 1},   {2, 7, 5, 6, 1, 3},
                               {2, 70, 4, 32, 0, 3}, {1, 5, 2, 130, 0, 2}, {1, 3, 2, 0, 0, 2},
                               {1, 4, 3, 8, 1, 0}};

Shape shape_of(const RopeSize& s) { return {s.batch, s.tokens, s.slots, s.width}; }

}  // namespace

TEST_CASE("rope rotates the named heads like the oracle, and back") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto direction = GENERATE(RopeDirection::forward, RopeDirection::backward);
  const RopeSpec spec = any_spec();
  const RopeSize s = GENERATE(from_range(std::begin(kSizes), std::end(kSizes)));
  Random random;
  TestTensor qkv(dtype, shape_of(s), random.values(shape_of(s).numel()));
  const double sign = direction == RopeDirection::forward ? 1 : -1;
  const Values want = oracle::rope(qkv.values(), s, spec, sign);
  run([&](Stream& stream) {
    rope(qkv, static_cast<int>(s.first), static_cast<int>(s.heads), spec, direction, stream);
  });
  check_close(qkv.values(), want, {dtype, 4});
}

TEST_CASE("rope backward is the gradient of rope forward") {
  const RopeSpec spec = any_spec();
  const RopeSize s{1, 3, 2, 4, 0, 2};
  Random random;
  const Values dy = random.values(24);
  check_gradient([&](const Values& v) { return dot(dy, oracle::rope(v, s, spec, 1)); },
                 random.values(24), oracle::rope(dy, s, spec, -1));
}

TEST_CASE("rope stays exact at far positions") {
  Random random;
  const RopeSize s{1, 40000, 1, 4, 0, 1};
  TestTensor qkv(DType::f32, shape_of(s), random.values(shape_of(s).numel()));
  const Values want = oracle::rope(qkv.values(), s, {}, 1);
  run([&](Stream& stream) { rope(qkv, 0, 1, {}, RopeDirection::forward, stream); });
  check_close(qkv.values(), want, {DType::f32, 4});
}

TEST_CASE("rope gives the same bits for any number of threads") {
  Random random;
  TestTensor qkv = random.tensor(DType::f32, {3, 50, 4, 36});
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{qkv};
    rope(out[0], 0, 3, {}, RopeDirection::forward, stream);
    return out;
  });
}

TEST_CASE("rope refuses odd heads, heads that are not there and impossible scalings") {
  TestTensor odd(DType::f32, {1, 2, 3, 5}), even(DType::f32, {1, 2, 3, 4});
  RopeSpec negative, no_factor, crossed;
  negative.theta = -1;
  no_factor.factor = 0;
  crossed.scaling = RopeSpec::Scaling::llama3;
  crossed.low_frequency_factor = 5;
  run([&](Stream& stream) {
    const auto forward = RopeDirection::forward;
    CHECK_THROWS_MATCHES(rope(odd, 0, 1, {}, forward, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("even size are rotated, got 5")));
    CHECK_THROWS_MATCHES(rope(even, 2, 2, {}, forward, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("heads [2, 4) are outside the 3")));
    CHECK_THROWS_AS(rope(even, 0, 1, negative, forward, stream), ArgumentError);
    CHECK_THROWS_AS(rope(even, 0, 1, no_factor, forward, stream), ArgumentError);
    CHECK_THROWS_AS(rope(even, 0, 1, crossed, forward, stream), ArgumentError);
  });
}
