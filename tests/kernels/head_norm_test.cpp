#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "kernels/rms_norm.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::at;

namespace {

constexpr float kEpsilon = 1e-6f;

/// Heads [first, first + heads) of a packed [tokens, slots, width], as rows of their own, and back.
struct Packed {
  std::int64_t tokens, slots, width, first, heads;

  std::int64_t rows() const { return tokens * heads; }
  std::int64_t offset(std::int64_t i) const {
    const std::int64_t row = i / width;
    return ((row / heads) * slots + first + row % heads) * width + i % width;
  }
  Values take(const Values& all) const {
    Values some = oracle::zeros(rows() * width);
    for (std::int64_t i = 0; i < rows() * width; ++i) at(some, i) = at(all, offset(i));
    return some;
  }
  Values put(const Values& some, Values all) const {
    for (std::int64_t i = 0; i < rows() * width; ++i) at(all, offset(i)) = at(some, i);
    return all;
  }
};

}  // namespace

TEST_CASE("head norm normalises the named heads and leaves the others alone") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const auto p = GENERATE(Packed{0, 5, 8, 1, 3}, Packed{1, 1, 1, 0, 1}, Packed{14, 7, 33, 4, 2},
                          Packed{14, 7, 16, 2, 0}, Packed{6, 4, 128, 0, 4});
  Random random;
  TestTensor qkv(dtype, {1, p.tokens, p.slots, p.width},
                 random.values(p.tokens * p.slots * p.width));
  TestTensor dqkv(dtype, {1, p.tokens, p.slots, p.width},
                  random.values(p.tokens * p.slots * p.width));
  TestTensor weight(dtype, {p.width}, random.values(p.width)), dweight(sum_dtype, {p.width});
  TestTensor saved(dtype, {p.tokens, p.heads, p.width}), rstd(DType::f32, {p.rows()});
  if (add) dweight.assign(random.values(p.width));
  const Values dweight_before = add ? dweight.values() : oracle::zeros(p.width);

  const Values x = p.take(qkv.values()), dy = p.take(dqkv.values());
  const oracle::Norm norm = oracle::rms_norm(x, weight.values(), p.rows(), p.width, kEpsilon);
  const oracle::NormGradient gradient =
      oracle::norm_gradient(dy, x, weight.values(), norm, p.rows(), p.width, false);
  const Values want_qkv = p.put(norm.y, qkv.values()),
               want_dqkv = p.put(gradient.dx, dqkv.values());
  const auto first = static_cast<int>(p.first), heads = static_cast<int>(p.heads);
  run([&](Stream& stream) {
    head_norm_forward(qkv, first, heads, weight, saved, rstd, kEpsilon, stream);
    head_norm_backward(dqkv, first, heads, weight, saved, rstd, dweight, Accumulate{add}, stream);
  });
  const double magnitude = p.width == 1 ? 1e3 : 8.0;
  check_close(qkv.values(), want_qkv, {dtype, 40, magnitude});
  CHECK(saved.values() == x);
  check_close(rstd.values(), norm.rstd, {DType::f32, 4, magnitude});
  check_close(dqkv.values(), want_dqkv, {dtype, 40, magnitude});
  check_close(dweight.values(), sum(dweight_before, gradient.dweight), {sum_dtype, 40, magnitude});
}

TEST_CASE("head norm gives the same bits for any number of threads") {
  Random random;
  TestTensor qkv = random.tensor(DType::f32, {2, 30, 6, 80});
  TestTensor weight(DType::f32, {80}, random.values(80));
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{
        qkv, qkv, {DType::f32, {80}}, {DType::f32, {60, 4, 80}}, {DType::f32, {240}}};
    head_norm_forward(out[0], 1, 4, weight, out[3], out[4], kEpsilon, stream);
    head_norm_backward(out[1], 1, 4, weight, out[3], out[4], out[2], Accumulate::no, stream);
    return out;
  });
}

TEST_CASE("head norm refuses heads that are not there and operands that do not fit") {
  TestTensor qkv(DType::f32, {1, 2, 3, 4}), weight(DType::f32, {4}), narrow(DType::f32, {3});
  TestTensor saved(DType::f32, {2, 2, 4}), rstd(DType::f32, {4});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(
        head_norm_forward(qkv, 2, 2, weight, saved, rstd, kEpsilon, stream), ArgumentError,
        MessageMatches(ContainsSubstring("heads [2, 4) are outside the 3 of [1, 2, 3, 4]")));
    CHECK_THROWS_AS(head_norm_forward(qkv, -1, 2, weight, saved, rstd, kEpsilon, stream),
                    ArgumentError);
    CHECK_THROWS_AS(head_norm_forward(qkv, 0, 2, narrow, saved, rstd, kEpsilon, stream),
                    ArgumentError);
    CHECK_THROWS_AS(head_norm_forward(qkv, 0, 1, weight, saved, rstd, kEpsilon, stream),
                    ArgumentError);
    CHECK_THROWS_AS(
        head_norm_backward(qkv, 0, 2, weight, saved, rstd, narrow, Accumulate::no, stream),
        ArgumentError);
  });
}
