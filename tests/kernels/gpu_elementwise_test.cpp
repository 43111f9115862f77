#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <limits>
#include <set>

#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/non_finite.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

// What rounds once, or not at all, has the CPU's bits.

namespace {

constexpr std::int64_t kSizes[] = {0, 1, 7, 2048, 16385, 50001};

template <class T>
std::vector<T> random_vector(Random& random, std::int64_t n) {
  std::vector<T> result;
  for (const double v : random.values(n, -100, 100)) result.push_back(T(static_cast<float>(v)));
  return result;
}

template <class T>
struct Sum {
  Sum(Random& random, std::int64_t n)
      : a(random_vector<T>(random, n)),
        b(random_vector<T>(random, n)),
        out(poisoned<T>(n)),
        sum(random_vector<float>(random, n)) {}
  std::vector<T> a, b, out;
  std::vector<float> sum;
};

template <class From, class To>
struct Conversion {
  Conversion(Random& random, std::int64_t n) : from(random_vector<From>(random, n)) {
    from.insert(from.end(), {From(0.0f), From(-0.0f), From(1e-6f), From(65504.0f), From(1e6f),
                             From(std::numeric_limits<float>::infinity())});
    to = poisoned<To>(static_cast<std::int64_t>(from.size()));
  }
  std::vector<From> from;
  std::vector<To> to;
};

template <class From, class To>
void check_cast(Gpu& gpu, Random& random, std::int64_t n, std::int64_t shift) {
  using Case = Conversion<From, To>;
  const auto body = [](Case& c, Stream& s, auto&& on) { cast(on(c.from), on(c.to), s); };
  const OnBoth<Case> both(gpu, Case(random, n), body, shift);
  CHECK(same_bits(both.gpu.to, both.cpu.to));
}

}  // namespace

TEMPLATE_TEST_CASE("on a GPU sums have the CPU's bits, also in place", "[gpu]", float, bf16, f16) {
  using Case = Sum<TestType>;
  const std::int64_t shift = GENERATE(0, 1);
  const bool in_place = GENERATE(false, true);
  Random random;
  Gpu gpu(0);
  for (const std::int64_t n : kSizes) {
    const auto body = [&](Case& c, Stream& stream, auto&& on) {
      add(on(c.a), on(c.b), on(in_place ? c.b : c.out), stream);
      accumulate_into(on(c.a), on(c.sum), stream);
    };
    const OnBoth<Case> both(gpu, Case(random, n), body, shift);
    CHECK(same_bits(both.gpu.out, both.cpu.out));
    CHECK(same_bits(both.gpu.b, both.cpu.b));
    CHECK(same_bits(both.gpu.sum, both.cpu.sum));
  }
}

TEMPLATE_TEST_CASE("on a GPU casts have the CPU's bits", "[gpu]", float, bf16, f16) {
  const std::int64_t shift = GENERATE(0, 1);
  Random random;
  Gpu gpu(0);
  for (const std::int64_t n : kSizes) {
    check_cast<TestType, float>(gpu, random, n, shift);
    check_cast<TestType, bf16>(gpu, random, n, shift);
    check_cast<TestType, f16>(gpu, random, n, shift);
  }
}

TEST_CASE("on a GPU integers are added, and bytes are copied and cleared", "[gpu]") {
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu(0);
  for (const std::int64_t n : kSizes) {
    const auto count = static_cast<std::size_t>(n);
    std::vector<std::int64_t> x(count, -3), sum(count, std::int64_t{1} << 40);
    auto source = poisoned<std::int16_t>(n), copied = std::vector<std::int16_t>(count, 1);
    auto cleared = poisoned<std::int16_t>(n);
    gpu.run(
        [&](Stream& stream, Gpu::Twins& on) {
          accumulate_into(on(x), on(sum), stream);
          copy(on(source), on(copied), stream);
          copy(on(source), on(source), stream);
          fill_zero(on(cleared), stream);
        },
        shift);
    CHECK(sum == std::vector<std::int64_t>(count, (std::int64_t{1} << 40) - 3));
    CHECK(same_bits(copied, source));
    CHECK(cleared == std::vector<std::int16_t>(count, 0));
  }
}

TEMPLATE_TEST_CASE("on a GPU dropout keeps what the CPU keeps, however it is cut", "[gpu]", float,
                   bf16, f16) {
  using Case = Sum<TestType>;
  const std::uint64_t first = GENERATE(0u, 1u, 4u, 1002u, (std::uint64_t{1} << 34) + 5);
  const std::int64_t shift = GENERATE(0, 1);
  const DropoutKey key{{Catch::getSeed(), 77}};
  Random random;
  Gpu gpu(0);
  for (const std::int64_t n : {0, 1, 3, 255, 256, 40003}) {
    const Case start(random, n);
    const auto body = [&](Case& c, Stream& stream, auto&& on) {
      dropout(on(c.a), on(c.out), 0.3f, key, first, stream);
      dropout(on(c.b), on(c.b), 0.5f, key, first, stream);
      dropout(on(c.a), on(c.b), on(c.b), 0.3f, key, first, stream);
      if (n > 5) {  // a second time, in two parts
        const Tensor whole = on(c.a);
        dropout(whole.flat({0, 5}), whole.flat({0, 5}), 0.3f, key, first, stream);
        dropout(whole.flat({5, n - 5}), whole.flat({5, n - 5}), 0.3f, key, first + 5, stream);
      }
    };
    const OnBoth<Case> both(gpu, start, body, shift);
    CHECK(same_bits(both.gpu.out, both.cpu.out));
    CHECK(same_bits(both.gpu.b, both.cpu.b));
    if (n > 5) CHECK(same_bits(both.gpu.a, both.gpu.out));
  }
}

TEST_CASE("on a GPU a recorded dropout draws from where it is told", "[gpu]") {
  std::vector<std::uint64_t> past{0};
  const std::uint64_t seven = 7;
  std::vector<float> x(1000, 2.0f);
  auto moved = poisoned<float>(1000), expected = moved;
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    const DropoutKey key{{Catch::getSeed(), 70}, on.pointer(past)};
    const Tensor from = on(x), to = on(moved);
    stream.synchronize();
    const auto recording = record(stream, [&] { dropout(from, to, 0.5f, key, 3, stream); });
    copy_bytes(&seven, on.pointer(past), sizeof(seven), stream);
    recording->replay();
    dropout(from, on(expected), 0.5f, {{Catch::getSeed(), 77}}, 3, stream);
  });
  CHECK(same_bits(moved, expected));
}

TEST_CASE("on a GPU dropped NaNs become zero, and probability 0 copies", "[gpu]") {
  std::vector<float> bad(1000, std::nanf("")), x(100, 2.0f);
  auto y = poisoned<float>(100);
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    dropout(on(bad), on(bad), 0.5f, {{Catch::getSeed(), 1}}, 0, stream);
    dropout(on(x), on(y), 0.0f, {}, 0, stream);
  });
  const auto zeros = std::count(bad.begin(), bad.end(), 0.0f);
  CHECK(zeros > 300);
  CHECK(zeros < 700);
  CHECK(same_bits(x, y));
}

TEMPLATE_TEST_CASE("on a GPU what is not finite is counted and the first is named", "[gpu]", float,
                   bf16, f16) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const float bad[] = {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(), std::nanf(""), -std::nanf("1")};
  const std::int64_t shift = GENERATE(0, 1);
  Random random;
  Gpu gpu(0);
  for (const std::int32_t n : {1, 2, 1000, 16385, 3000001}) {
    std::vector<TestType> x(static_cast<std::size_t>(n), TestType(-65504.0f * 0.99f));
    std::vector<std::int64_t> nothing{0, kNone}, found{0, kNone}, more{7, 3};
    gpu.run([&](Stream& s, Gpu::Twins& on) { find_non_finite(on(x), 5, on(nothing), s); }, shift);
    CHECK(nothing == std::vector<std::int64_t>{0, kNone});
    std::set<std::int32_t> where{n - 1};
    for (const std::int32_t i : random.integers(5, n)) where.insert(i);
    int kind = 0;
    for (const std::int32_t i : where) x[static_cast<std::size_t>(i)] = TestType(bad[kind++ % 4]);
    gpu.run(
        [&](Stream& s, Gpu::Twins& on) {
          find_non_finite(on(x), 1000, on(found), s);
          find_non_finite(on(x), 1000, on(more), s);
        },
        shift);
    const auto count = static_cast<std::int64_t>(where.size());
    CHECK(found == std::vector<std::int64_t>{count, 1000 + *where.begin()});
    CHECK(more == std::vector<std::int64_t>{7 + count, 3});
  }
}
