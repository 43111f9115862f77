#include "kernels/elementwise.h"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t kSizes[] = {0, 1, 7, 16383, 16384, 16385, 50001};

template <class T>
std::vector<T> random_vector(Random& random, std::int64_t n) {
  std::vector<T> result;
  for (const double v : random.values(n, -100, 100)) result.push_back(T(static_cast<float>(v)));
  return result;
}

template <class From, class To>
void check_cast(std::vector<From> from) {
  from.insert(from.end(), {From(0.0f), From(-0.0f), From(1e-6f), From(65504.0f), From(1e6f),
                           From(std::numeric_limits<float>::infinity())});
  auto to = poisoned<To>(static_cast<std::int64_t>(from.size()));
  run([&](Stream& stream) { cast(view_of(from), view_of(to), stream); });
  std::vector<To> want;
  want.reserve(from.size());
  for (const From x : from) want.push_back(To(static_cast<float>(x)));
  CHECK(same_bits(to, want));
}

}  // namespace

TEMPLATE_TEST_CASE("add sums in float and rounds once, also in place", "", float, bf16, f16) {
  Random random;
  for (const std::int64_t n : kSizes) {
    auto a = random_vector<TestType>(random, n), b = random_vector<TestType>(random, n);
    auto out = poisoned<TestType>(n);
    std::vector<TestType> want;
    for (std::size_t i = 0; i < a.size(); ++i) {
      want.push_back(TestType(static_cast<float>(a[i]) + static_cast<float>(b[i])));
    }
    run([&](Stream& stream) { add(view_of(a), view_of(b), view_of(out), stream); });
    CHECK(same_bits(out, want));
    run([&](Stream& stream) { add(view_of(a), view_of(b), view_of(b), stream); });
    CHECK(same_bits(b, want));
  }
}

TEMPLATE_TEST_CASE("cast converts to nearest even between all float dtypes", "", float, bf16, f16) {
  Random random;
  for (const std::int64_t n : kSizes) {
    check_cast<TestType, float>(random_vector<TestType>(random, n));
    check_cast<TestType, bf16>(random_vector<TestType>(random, n));
    check_cast<TestType, f16>(random_vector<TestType>(random, n));
  }
}

TEMPLATE_TEST_CASE("accumulate_into adds any float dtype to f32", "", float, bf16, f16) {
  Random random;
  for (const std::int64_t n : kSizes) {
    auto x = random_vector<TestType>(random, n);
    auto sum = random_vector<float>(random, n);
    std::vector<float> want;
    for (std::size_t i = 0; i < x.size(); ++i) want.push_back(sum[i] + static_cast<float>(x[i]));
    run([&](Stream& stream) { accumulate_into(view_of(x), view_of(sum), stream); });
    CHECK(same_bits(sum, want));
  }
}

TEST_CASE("accumulate_into adds i64 to i64") {
  std::vector<std::int64_t> x(20000, 3), sum(20000, std::int64_t{1} << 40);
  run([&](Stream& stream) { accumulate_into(view_of(x), view_of(sum), stream); });
  CHECK(sum == std::vector<std::int64_t>(20000, (std::int64_t{1} << 40) + 3));
}

TEST_CASE("fill_zero and copy move every byte, of any dtype") {
  for (const std::int64_t n : kSizes) {
    auto x = poisoned<std::int16_t>(n), y = std::vector<std::int16_t>(x.size(), 1);
    run([&](Stream& stream) { copy(view_of(x), view_of(y), stream); });
    CHECK(same_bits(x, y));
    run([&](Stream& stream) {
      copy(view_of(x), view_of(x), stream);
      fill_zero(view_of(x), stream);
    });
    CHECK(x == std::vector<std::int16_t>(x.size(), 0));
  }
  auto wide = poisoned<double>(9);
  run([&](Stream& stream) { fill_zero(view_of(wide).flat({2, 5}), stream); });
  CHECK(wide[1] != 0.0);
  CHECK(wide[2] == 0.0);
  CHECK(wide[6] == 0.0);
  CHECK(wide[7] != 0.0);
}

TEST_CASE("elementwise operations take any shape of one numel") {
  std::vector<float> a(6, 1.0f), out(6);
  run([&](Stream& stream) { add(view_of(a).view({2, 3}), view_of(a), view_of(out), stream); });
  CHECK(out == std::vector<float>(6, 2.0f));
}

TEST_CASE("elementwise operations refuse other sizes and dtypes") {
  std::vector<float> f(4), g(5);
  std::vector<bf16> h(4);
  std::vector<std::int64_t> i(4);
  CpuStream stream("test");
  CHECK_THROWS_WITH(add(view_of(f), view_of(g), view_of(f), stream),
                    ContainsSubstring("b is f32 [5], expected f32 [4]"));
  CHECK_THROWS_AS(add(view_of(f), view_of(f), view_of(g), stream), ArgumentError);
  CHECK_THROWS_AS(add(view_of(f), view_of(h), view_of(f), stream), ArgumentError);
  CHECK_THROWS_AS(add(view_of(i), view_of(i), view_of(i), stream), ArgumentError);
  CHECK_THROWS_AS(cast(view_of(f), view_of(i), stream), ArgumentError);
  CHECK_THROWS_AS(cast(view_of(g), view_of(h), stream), ArgumentError);
  CHECK_THROWS_AS(accumulate_into(view_of(f), view_of(h), stream), ArgumentError);
  CHECK_THROWS_AS(accumulate_into(view_of(f), view_of(i), stream), ArgumentError);
  CHECK_THROWS_AS(accumulate_into(view_of(g), view_of(f), stream), ArgumentError);
  CHECK_THROWS_AS(copy(view_of(f), view_of(g), stream), ArgumentError);
  CHECK_THROWS_AS(copy(view_of(f), view_of(h), stream), ArgumentError);
  CHECK_THROWS_AS(fill_zero(Tensor{}, stream), ArgumentError);
}
