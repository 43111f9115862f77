#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/head_norm_case.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr float kEpsilon = HeadNormCase::kEpsilon;

}  // namespace

TEST_CASE("head norm normalises and rotates the named heads and leaves the others alone") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const auto p =
      GENERATE(Heads{1, 0, 5, 8, 1, 3}, Heads{1, 1, 1, 2, 0, 1}, Heads{2, 7, 7, 34, 4, 2},
               Heads{2, 7, 7, 16, 2, 0}, Heads{3, 2, 4, 128, 0, 4});
  HeadNormCase c(dtype, sum_dtype, p, add);
  const HeadNormWant want(c);
  run([&](Stream& stream) {
    c.enqueue(stream, [](TestTensor& tensor) -> Tensor { return tensor; });
  });
  want.check(c);
}

TEST_CASE("head norm gives the same bits for any number of threads") {
  Random random;
  TestTensor qkv = random.tensor(DType::f32, {2, 30, 6, 80});
  TestTensor weight(DType::f32, {80}, random.values(80));
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{
        qkv, qkv, {DType::f32, {80}}, {DType::f32, {60, 4, 80}}, {DType::f32, {240}}};
    head_norm_forward(out[0], 1, 4, weight, out[3], out[4], kEpsilon, {}, stream);
    head_norm_backward(out[1], 1, 4, weight, out[3], out[4], out[2], Accumulate::no, {}, stream);
    return out;
  });
}

TEST_CASE("head norm refuses heads that are not there and operands that do not fit") {
  TestTensor qkv(DType::f32, {1, 2, 3, 4}), weight(DType::f32, {4}), narrow(DType::f32, {3});
  TestTensor saved(DType::f32, {2, 2, 4}), rstd(DType::f32, {4});
  TestTensor wide(DType::f32, {1, 0, 3, kMostHeadWidth + 2}), odd(DType::f32, {1, 2, 3, 5});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(
        head_norm_forward(qkv, 2, 2, weight, saved, rstd, kEpsilon, {}, stream), ArgumentError,
        MessageMatches(ContainsSubstring("heads [2, 4) are outside the 3 of [1, 2, 3, 4]")));
    CHECK_THROWS_AS(head_norm_forward(qkv, -1, 2, weight, saved, rstd, kEpsilon, {}, stream),
                    ArgumentError);
    CHECK_THROWS_AS(head_norm_forward(qkv, 0, 2, narrow, saved, rstd, kEpsilon, {}, stream),
                    ArgumentError);
    CHECK_THROWS_AS(head_norm_forward(qkv, 0, 1, weight, saved, rstd, kEpsilon, {}, stream),
                    ArgumentError);
    CHECK_THROWS_MATCHES(head_norm_forward(wide, 0, 1, weight, saved, rstd, kEpsilon, {}, stream),
                         ArgumentError, MessageMatches(ContainsSubstring("up to 8192 elements")));
    CHECK_THROWS_MATCHES(head_norm_forward(odd, 0, 1, weight, saved, rstd, kEpsilon, {}, stream),
                         ArgumentError, MessageMatches(ContainsSubstring("even size")));
    CHECK_THROWS_AS(
        head_norm_backward(qkv, 0, 2, weight, saved, rstd, narrow, Accumulate::no, {}, stream),
        ArgumentError);
  });
}
