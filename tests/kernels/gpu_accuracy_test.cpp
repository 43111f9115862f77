#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "kernels/accuracy.h"
#include "tests/kernels/accuracy_case.h"
#include "tests/kernels/gpu_test_tensor.h"

using namespace sherd;
using namespace sherd::test;

TEST_CASE("on a GPU rows whose label has the largest logit are counted as on the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Gpu gpu(0);
  for (const std::int64_t rows : {0, 1, 33, 700}) {
    for (const std::int64_t classes : {1, 2, 7, 1000}) {
      Guesses c(dtype, rows, classes);
      const std::int64_t expected = 5 + c.correct();
      std::vector<std::int64_t> correct = {5};
      gpu.run([&](Stream& stream, Gpu::Twins& on) {
        count_correct(on(c.logits), on(c.labels), on(correct), stream);
      });
      CHECK(correct.front() == expected);
    }
  }
}

TEST_CASE("on a GPU rows with NaN are wrong", "[gpu]") {
  const double nan = std::nan("");
  TestTensor logits(DType::f32, {3, 2}, {nan, 2, 3, nan, 3, 4});
  std::vector<std::int32_t> labels = {1, 0, 1};
  std::vector<std::int64_t> correct = {0};
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    count_correct(on(logits), on(labels), on(correct), stream);
  });
  CHECK(correct.front() == 1);
}
