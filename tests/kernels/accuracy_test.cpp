#include "kernels/accuracy.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <vector>

#include "core/label.h"
#include "tests/kernels/accuracy_case.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

namespace {

std::int64_t counted(const Values& logits, const std::vector<std::int32_t>& labels,
                     std::int64_t before = 0, DType dtype = DType::f32) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const std::int64_t classes = rows == 0 ? 3 : static_cast<std::int64_t>(logits.size()) / rows;
  TestTensor x(dtype, {rows, classes}, logits), ids({rows}, labels);
  std::int64_t correct = before;
  run([&](Stream& stream) { count_correct(x, ids, Tensor(&correct, DType::i64, {1}), stream); });
  return correct;
}

}  // namespace

TEST_CASE("rows whose label has the largest logit are counted") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t rows : {0, 1, 33, 700}) {
    for (const std::int64_t classes : {1, 2, 7, 1000}) {
      const Guesses c(dtype, rows, classes);
      CHECK(counted(c.logits.values(), c.labels, 5, dtype) == 5 + c.correct());
    }
  }
}

TEST_CASE("the first of equal logits is the guess") {
  CHECK(counted({1, 2, 2, 1, 2, 2}, {1, 2}) == 1);
  CHECK(counted({0, 0, 0}, {0}) == 1);
}

TEST_CASE("ignored labels and labels of no class count nothing, and neither do rows with NaN") {
  const double nan = std::nan("");
  CHECK(counted({1, 2, 3, 4}, {kIgnoredLabel, 1}) == 1);
  CHECK(counted({1, 2, 3, 4}, {2, -1}) == 0);
  CHECK(counted({nan, 2, 3, nan, 3, 4}, {1, 0, 1}) == 1);
}

TEST_CASE("counting refuses operands that do not fit") {
  TestTensor logits(DType::f32, {2, 3}), labels({3}, {0, 1, 2});
  std::int64_t correct = 0;
  run([&](Stream& stream) {
    CHECK_THROWS_AS(count_correct(logits, labels, Tensor(&correct, DType::i64, {1}), stream),
                    ArgumentError);
    CHECK_THROWS_AS(count_correct(labels, labels, Tensor(&correct, DType::i64, {1}), stream),
                    ArgumentError);
  });
}
