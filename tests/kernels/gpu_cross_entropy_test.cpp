#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/cross_entropy.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using oracle::at;

namespace {

using Labels = std::vector<std::int32_t>;

Labels labels_with_ignored(Random& random, std::int64_t rows, std::int64_t vocabulary) {
  Labels labels = random.integers(rows, static_cast<std::int32_t>(vocabulary));
  for (std::size_t r = 2; r < labels.size(); r += 5) labels[r] = kIgnoredLabel;
  return labels;
}

struct Loss {
  Loss(const TestTensor& from, const Labels& ids, double factor)
      : logits(from),
        labels({static_cast<std::int64_t>(ids.size())}, ids),
        losses(DType::f32, {static_cast<std::int64_t>(ids.size())}),
        again(losses),
        scale(DType::f32, {1}, {factor}) {}
  TestTensor logits, labels, losses, again, scale;
};

void run_on(Gpu& gpu, Loss& c, std::int64_t shift = 0) {
  gpu.run(
      [&](Stream& stream, Gpu::Twins& on) {
        cross_entropy_forward(on(c.logits), on(c.labels), on(c.losses), stream);
        cross_entropy_forward_backward(on(c.logits), on(c.labels), on(c.again), on(c.scale),
                                       stream);
      },
      shift);
}

}  // namespace

TEMPLATE_TEST_CASE("on a GPU cross-entropy and its gradient agree with the oracle as on the CPU",
                   "[gpu]", float, bf16, f16) {
  const DType dtype = dtype_of<TestType>();
  const double spread = GENERATE(1.0, 40.0);
  const std::int64_t shift = GENERATE(0, 1);
  Random random;
  Gpu gpu(0);
  // Long rows lie in the shared memory of a cluster of 2, 4 or 8 blocks, and the last in none in
  // f32.
  for (const std::int64_t vocabulary :
       {1, 2, 101, 1000, 2049, 6000, 50257, 100001, 151936, 480001}) {
    for (const std::int64_t rows : {0, 1, 3, 33}) {
      if (rows * vocabulary > 500000) continue;
      INFO(rows << " rows of " << vocabulary);
      const Labels ids = labels_with_ignored(random, rows, vocabulary);
      const Loss start(random.tensor(dtype, {rows, vocabulary}, -spread, spread), ids, 0.375);
      const oracle::Loss want =
          oracle::cross_entropy(start.logits.values(), ids, vocabulary, 0.375);
      const auto body = [](Loss& c, Stream& stream, auto&& on) {
        cross_entropy_forward(on(c.logits), on(c.labels), on(c.losses), stream);
        cross_entropy_forward_backward(on(c.logits), on(c.labels), on(c.again), on(c.scale),
                                       stream);
      };
      OnBoth<Loss>(gpu, start, body, shift).each([&](const Loss& c) {
        check_close(c.losses.values(), want.losses, {DType::f32, 16, spread});
        CHECK(c.again.bytes() == c.losses.bytes());
        check_close(c.logits.values(), want.gradient, {dtype, 24});
      });
    }
  }
}

TEST_CASE("on a GPU ignored labels give no loss and no gradient, whatever the logits", "[gpu]") {
  const TestTensor logits(DType::f32, {2, 2}, {std::nan(""), INFINITY, 1, 2});
  Loss c(logits, {kIgnoredLabel, kIgnoredLabel}, 1);
  Gpu gpu(0);
  run_on(gpu, c);
  CHECK(c.losses.values() == Values{0, 0});
  CHECK(c.again.values() == Values{0, 0});
  CHECK(c.logits.values() == Values{0, 0, 0, 0});
}

TEST_CASE("on a GPU a NaN or an infinite logit makes its row's loss NaN", "[gpu]") {
  const std::int64_t where = GENERATE(0, 1000, 2048, 4999);
  const double what = GENERATE(std::nan(""), INFINITY);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Values values(5000, -1.0);
  at(values, where) = what;
  Loss c({dtype, {1, 5000}, values}, {3}, 1);
  Gpu gpu(0);
  run_on(gpu, c);
  CHECK(std::isnan(c.losses.values()[0]));
  CHECK(std::isnan(c.again.values()[0]));
}

TEST_CASE("on a GPU logits of -inf are classes that can't be", "[gpu]") {
  Values values(5000, -INFINITY);
  at(values, 4000) = 2.0;
  at(values, 4500) = 2.0;
  Loss c({DType::f32, {1, 5000}, values}, {4500}, 1);
  Gpu gpu(0);
  run_on(gpu, c);
  check_close(c.losses.values(), {std::log(2.0)}, {});
  CHECK(at(c.logits.values(), 0) == 0.0);
  CHECK(at(c.logits.values(), 4000) == 0.5);
  CHECK(at(c.logits.values(), 4500) == -0.5);
}

TEST_CASE("on a GPU a label outside the classes makes its loss NaN and no gradient", "[gpu]") {
  const std::int32_t wrong = GENERATE(-1, -99, 7);
  Loss c({DType::f32, {3, 7}, Values(21, 1.0)}, {0, kIgnoredLabel, wrong}, 1);
  Gpu gpu(0);
  run_on(gpu, c);
  CHECK(std::isfinite(c.losses.values()[0]));
  CHECK(c.losses.values()[1] == 0.0);
  CHECK(std::isnan(c.losses.values()[2]));
  CHECK(std::isnan(c.again.values()[2]));
  for (std::int64_t i = 14; i < 21; ++i) CHECK(at(c.logits.values(), i) == 0.0);
}
