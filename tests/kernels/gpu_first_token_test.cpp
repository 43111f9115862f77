#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/kernels/first_token_case.h"
#include "tests/kernels/gpu_test_tensor.h"

using namespace sherd;
using namespace sherd::test;

TEST_CASE("on a GPU first tokens are taken out and put back as on the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu(0);
  for (const std::int64_t samples : {0, 1, 5}) {
    for (const std::int64_t width : {1, 37, 256, 5000}) {
      const FirstTokens start(dtype, samples, 3, width);
      const auto body = [](FirstTokens& c, Stream& stream, auto&& on) {
        first_token_forward(on(c.x), on(c.y), stream);
        first_token_backward(on(c.dy), on(c.dx), stream);
      };
      OnBoth<FirstTokens>(gpu, start, body, shift).each([&](const FirstTokens& c) {
        CHECK(c.y.values() == start.first());
        CHECK(c.dx.values() == start.spread());
      });
    }
  }
}
