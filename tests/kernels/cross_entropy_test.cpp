#include "kernels/cross_entropy.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::at;

namespace {

using Labels = std::vector<std::int32_t>;

Labels labels_with_ignored(Random& random, std::int64_t rows, std::int64_t vocabulary) {
  Labels labels = random.integers(rows, static_cast<std::int32_t>(vocabulary));
  for (std::size_t r = 2; r < labels.size(); r += 5) labels[r] = kIgnoredLabel;
  return labels;
}

}  // namespace

TEST_CASE("cross-entropy and its gradient agree with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t rows = GENERATE(0, 1, 33);
  const std::int64_t vocabulary = GENERATE(1, 2, 101, 2047, 2049, 6000);
  const double spread = GENERATE(1.0, 40.0);
  Random random;
  const Labels ids = labels_with_ignored(random, rows, vocabulary);
  TestTensor logits(dtype, {rows, vocabulary}, random.values(rows * vocabulary, -spread, spread));
  TestTensor labels({rows}, ids), losses(DType::f32, {rows}), again(DType::f32, {rows});
  TestTensor scale(DType::f32, {1}, {0.375});
  const oracle::Loss want = oracle::cross_entropy(logits.values(), ids, vocabulary, 0.375);
  run([&](Stream& stream) {
    cross_entropy_forward(logits, labels, losses, stream);
    cross_entropy_forward_backward(logits, labels, again, scale, stream);
  });
  check_close(losses.values(), want.losses, {DType::f32, 4, spread});
  CHECK(again.bytes() == losses.bytes());
  check_close(logits.values(), want.gradient, {dtype, 6});
}

TEST_CASE("the cross-entropy oracle's gradient is that of its forward pass") {
  Random random;
  const Labels ids{3, kIgnoredLabel, 0};
  const Values logits = random.values(12);
  const auto total = [&](const Values& v) {
    return 0.5 * dot(oracle::cross_entropy(v, ids, 4, 1).losses, Values(3, 1.0));
  };
  check_gradient(total, logits, oracle::cross_entropy(logits, ids, 4, 0.5).gradient);
}

TEST_CASE("ignored labels give no loss and no gradient even where logits are not finite") {
  TestTensor logits(DType::f32, {2, 2}, {std::nan(""), INFINITY, 1, 2});
  TestTensor labels({2}, Labels{kIgnoredLabel, kIgnoredLabel}), losses(DType::f32, {2});
  TestTensor scale(DType::f32, {1}, {1});
  run([&](Stream& stream) {
    cross_entropy_forward_backward(logits, labels, losses, scale, stream);
  });
  CHECK(losses.values() == Values{0, 0});
  CHECK(logits.values() == Values{0, 0, 0, 0});
}

TEST_CASE("a NaN or an infinite logit makes its row's loss NaN, wherever it is") {
  const std::int64_t where = GENERATE(0, 1000, 2048, 4999);
  const double what = GENERATE(std::nan(""), INFINITY);
  Values values(5000, -1.0);
  at(values, where) = what;
  TestTensor logits(DType::f32, {1, 5000}, values), labels({1}, Labels{3}), losses(DType::f32, {1});
  run([&](Stream& stream) { cross_entropy_forward(logits, labels, losses, stream); });
  CHECK(std::isnan(losses.values()[0]));
}

TEST_CASE("logits of -inf are classes that can't be") {
  Values values(5000, -INFINITY);
  at(values, 4000) = 2.0;
  at(values, 4500) = 2.0;
  TestTensor logits(DType::f32, {1, 5000}, values), labels({1}, Labels{4500});
  TestTensor losses(DType::f32, {1}), scale(DType::f32, {1}, {1});
  run([&](Stream& stream) {
    cross_entropy_forward_backward(logits, labels, losses, scale, stream);
  });
  check_close(losses.values(), {std::log(2.0)}, {});
  CHECK(at(logits.values(), 0) == 0.0);
  CHECK(at(logits.values(), 4000) == 0.5);
  CHECK(at(logits.values(), 4500) == -0.5);
}

TEST_CASE("cross-entropy gives the same bits for any number of threads") {
  Random random;
  TestTensor logits = random.tensor(DType::f32, {37, 3001});
  TestTensor labels({37}, labels_with_ignored(random, 37, 3001)), scale(DType::f32, {1}, {0.1});
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{logits, {DType::f32, {37}}};
    cross_entropy_forward_backward(out[0], labels, out[1], scale, stream);
    return out;
  });
}

TEST_CASE("a label outside the classes is named with its position and the range") {
  const std::int32_t wrong = GENERATE(-1, -99, 7);
  TestTensor logits(DType::f32, {3, 7}, Values(21, 1.0)), losses(DType::f32, {3});
  TestTensor labels({3}, Labels{0, kIgnoredLabel, wrong}), scale(DType::f32, {1}, {1});
  const std::string message = fmt::format("label {} at position 2 is outside [0, 7)", wrong);
  CHECK_THROWS_MATCHES(
      run([&](Stream& stream) { cross_entropy_forward(logits, labels, losses, stream); }),
      DataError, MessageMatches(ContainsSubstring(message)));
  CHECK_THROWS_MATCHES(run([&](Stream& stream) {
                         cross_entropy_forward_backward(logits, labels, losses, scale, stream);
                       }),
                       DataError, MessageMatches(ContainsSubstring(message)));
  CHECK(logits.values() == Values(21, 1.0));
}

TEST_CASE("cross-entropy refuses operands that do not fit") {
  TestTensor logits(DType::f32, {3, 7}), losses(DType::f32, {3}), two(DType::f32, {2});
  TestTensor labels({3}, Labels{0, 1, 2});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(cross_entropy_forward(logits, two, losses, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("expected i32 of 3 elements")));
    CHECK_THROWS_AS(cross_entropy_forward(logits, labels, two, stream), ArgumentError);
    CHECK_THROWS_AS(cross_entropy_forward_backward(logits, labels, losses, two, stream),
                    ArgumentError);
  });
}
