#include "kernels/first_token.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/first_token_case.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("first tokens are taken out of samples, and their gradients put back among zeros") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t samples = GENERATE(0, 1, 5), tokens = GENERATE(1, 9);
  const std::int64_t width = GENERATE(0, 1, 37, 256);
  FirstTokens c(dtype, samples, tokens, width);
  const Values first = c.first(), spread = c.spread();
  run([&](Stream& stream) {
    first_token_forward(c.x, c.y, stream);
    first_token_backward(c.dy, c.dx, stream);
  });
  CHECK(c.y.values() == first);
  CHECK(c.dx.values() == spread);
}

TEST_CASE("first tokens refuse operands that do not fit") {
  TestTensor x(DType::f32, {2, 3, 4}), y(DType::f32, {2, 3}), none(DType::f32, {2, 0, 4});
  TestTensor good(DType::f32, {2, 4}), half(DType::bf16, {2, 4});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(first_token_forward(x, y, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("y is f32 [2, 3], expected f32 [2, 4]")));
    CHECK_THROWS_AS(first_token_forward(x, half, stream), ArgumentError);
    CHECK_THROWS_MATCHES(first_token_forward(none, good, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("at least one token")));
    CHECK_THROWS_AS(first_token_backward(y, x, stream), ArgumentError);
    CHECK_THROWS_AS(first_token_backward(good, good, stream), ArgumentError);
  });
}
