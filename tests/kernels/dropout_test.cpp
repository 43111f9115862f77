#include "kernels/dropout.h"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;

namespace {

DropoutKey fresh_key() { return {{Catch::getSeed(), 77}}; }

template <class T>
std::vector<T> ones(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n), T(1.0f));
}

}  // namespace

TEMPLATE_TEST_CASE("dropout keeps the elements whose own number says so, scaled, and adds them", "",
                   float, bf16, f16) {
  Random random;
  constexpr float kProbability = 0.3f;
  for (const std::int64_t n : {0, 1, 3, 255, 256, 257, 16385, 40003}) {
    const auto first = static_cast<std::uint64_t>(random.integers(1, 1000)[0]);
    std::vector<TestType> x;
    for (const double v : random.values(n)) x.push_back(TestType(static_cast<float>(v)));
    auto y = poisoned<TestType>(n);
    run([&](Stream& stream) {
      dropout(view_of(x), view_of(y), kProbability, fresh_key(), first, stream);
    });
    std::vector<TestType> want;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool keep = uniform(fresh_key().rng, first + i) >= kProbability;
      const float scale = 1.0f / (1.0f - kProbability);
      want.push_back(TestType(keep ? static_cast<float>(x[i]) * scale : 0.0f));
    }
    CHECK(same_bits(y, want));

    std::vector<TestType> residual;
    for (const double v : random.values(n)) residual.push_back(TestType(static_cast<float>(v)));
    auto onto = residual;
    run([&](Stream& stream) {
      dropout(view_of(x), view_of(onto), view_of(onto), kProbability, fresh_key(), first, stream);
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool keep = uniform(fresh_key().rng, first + i) >= kProbability;
      const float scale = 1.0f / (1.0f - kProbability);
      const float kept = keep ? static_cast<float>(x[i]) * scale : 0.0f;
      want[i] = TestType(static_cast<float>(residual[i]) + kept);
    }
    CHECK(same_bits(onto, want));
  }
}

TEST_CASE("dropout is the same however the batch is split, on any number of threads, in place") {
  Random random;
  constexpr std::int64_t kNumel = 50021;
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << 34) + 5;  // block numbers above 32 bits
  auto whole = ones<float>(kNumel), parts = ones<float>(kNumel);
  run([&](Stream& s) { dropout(view_of(whole), view_of(whole), 0.5f, fresh_key(), kFirst, s); }, 1);
  run([&](Stream& s) {
    for (std::int64_t at = 0; at < kNumel;) {
      const std::int64_t n = std::min<std::int64_t>(random.integers(1, 20000)[0], kNumel - at);
      const Tensor part = view_of(parts).flat({at, n});
      dropout(part, part, 0.5f, fresh_key(), kFirst + static_cast<std::uint64_t>(at), s);
      at += n;
    }
  });
  CHECK(same_bits(whole, parts));
}

TEST_CASE("dropout reads how many sequences further its numbers are when it runs") {
  std::uint64_t past = 0;
  const DropoutKey key{{Catch::getSeed(), 70}, &past};
  auto moved = ones<float>(999), expected = moved;
  run([&](Stream& stream) {
    enqueue(stream, [&past] { past = 7; });
    dropout(view_of(moved), view_of(moved), 0.5f, key, 3, stream);
    dropout(view_of(expected), view_of(expected), 0.5f, fresh_key(), 3, stream);
  });
  CHECK(same_bits(moved, expected));
}

TEST_CASE("dropout drops its share and keeps the mean") {
  constexpr std::int64_t kNumel = 200000;
  for (const float p : {0.1f, 0.5f, 0.9f}) {
    auto x = ones<float>(kNumel);
    run([&](Stream& s) { dropout(view_of(x), view_of(x), p, fresh_key(), 0, s); });
    double dropped = 0, sum = 0;
    for (const float v : x) {
      dropped += v == 0.0f ? 1.0 : 0.0;
      sum += v;
    }
    const double spread = std::sqrt(p * (1 - p) / static_cast<double>(kNumel));
    CHECK(std::abs(dropped / kNumel - p) < 6 * spread);
    CHECK(std::abs(sum / kNumel - 1) < 6 * spread / (1 - p));
  }
}

TEST_CASE("dropout with probability 0 copies, and what is dropped is zero whatever it was") {
  auto x = poisoned<float>(100), y = ones<float>(100);
  run([&](Stream& s) { dropout(view_of(x), view_of(y), 0.0f, fresh_key(), 0, s); });
  CHECK(same_bits(x, y));
  auto bad = std::vector<float>(1000, std::nanf(""));
  run([&](Stream& s) { dropout(view_of(bad), view_of(bad), 0.5f, fresh_key(), 0, s); });
  int zeros = 0;
  for (const float v : bad) zeros += v == 0.0f ? 1 : 0;
  CHECK(zeros > 300);
  CHECK(zeros < 700);
}

TEST_CASE("dropout refuses probabilities outside [0, 1) and unlike tensors") {
  CpuStream stream("test");
  auto x = ones<float>(4), longer = ones<float>(5);
  auto other = ones<bf16>(4);
  const auto call = [&](const Tensor& y, float p) {
    dropout(view_of(x), y, p, fresh_key(), 0, stream);
  };
  CHECK_THROWS_AS(call(view_of(x), 1.0f), ArgumentError);
  CHECK_THROWS_AS(call(view_of(x), -0.1f), ArgumentError);
  CHECK_THROWS_AS(call(view_of(x), std::nanf("")), ArgumentError);
  CHECK_THROWS_AS(call(view_of(longer), 0.1f), ArgumentError);
  CHECK_THROWS_AS(call(view_of(other), 0.1f), ArgumentError);
  const Tensor y = view_of(x);
  CHECK_THROWS_AS(dropout(y, view_of(longer), y, 0.1f, fresh_key(), 0, stream), ArgumentError);
  CHECK_THROWS_AS(dropout(y, y, y, 0.0f, fresh_key(), 0, stream), ArgumentError);
}
