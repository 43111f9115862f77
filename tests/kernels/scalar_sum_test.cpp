#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "kernels/fixed_point.h"
#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;

namespace {

using Int128 = __int128;
using Accumulator = std::array<std::int64_t, kScalarLimbs>;
using Sum = void (*)(const Tensor&, const Tensor&, const Tensor&, Stream&);

struct Total {
  Accumulator limbs{};
  std::int64_t non_finite = 0;
  bool operator==(const Total&) const = default;
  double value() const { return scalar_value(limbs); }
};

void add(Total& total, Sum sum, std::vector<float> x, int threads = 2) {
  const Tensor limbs(total.limbs.data(), DType::i64, {kScalarLimbs});
  const Tensor count(&total.non_finite, DType::i64, {1});
  run([&](Stream& s) { sum(view_of(x), limbs, count, s); }, threads);
}

Total total_of(Sum sum, const std::vector<float>& x, int threads = 2) {
  Total total;
  add(total, sum, x, threads);
  return total;
}

/// Floats of any exponent in [low, high).
std::vector<float> spread(std::mt19937_64& random, std::int64_t n, int low, int high) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto mantissa = static_cast<float>(random() % (1 << 24)) * 0x1p-24f + 1.0f;
    const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low));
    x.push_back(std::ldexp(random() % 2 == 0 ? mantissa : -mantissa, exponent));
  }
  return x;
}

Int128 units_of(double value) { return static_cast<Int128>(std::nearbyint(std::ldexp(value, 86))); }

Accumulator canonical(Int128 units) {
  Accumulator limbs;
  constexpr Int128 kMask = (Int128{1} << 40) - 1;
  for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
    limbs[i] = static_cast<std::int64_t>(units & kMask);
    units >>= 40;
  }
  limbs.back() = static_cast<std::int64_t>(units);
  return limbs;
}

/// limbs - value, exactly, in units of 2^-86; the difference must fit.
Int128 difference(const Accumulator& limbs, double value) {
  int exponent = 0;
  auto mantissa = static_cast<Int128>(std::ldexp(std::frexp(value, &exponent), 53));
  int shift = exponent - 53 + 86;
  if (shift < 0) {
    mantissa >>= -shift;  // whole units: nothing is lost
    shift = 0;
  }
  std::array<Int128, 6> digits{};
  for (std::size_t i = 0; i < limbs.size(); ++i) digits[i] = limbs[i];
  const auto at = static_cast<std::size_t>(shift / 40);
  mantissa <<= shift % 40;  // at most 92 bits
  const Int128 mask = (Int128{1} << 40) - 1;
  digits[at] -= mantissa & mask;
  digits[at + 1] -= mantissa >> 40;
  Int128 result = 0;
  for (std::size_t i = digits.size(); i-- > 0;) result = result * (Int128{1} << 40) + digits[i];
  return result;
}

/// Whether `value` is what `limbs` hold, rounded once to nearest even, by exact integers.
bool is_nearest(double value, const Accumulator& limbs) {
  const auto distance = [&](double v) {
    const Int128 d = difference(limbs, v);
    return d < 0 ? -d : d;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const Int128 here = distance(value);
  if (std::abs(value) < 0x1p-33) return here == 0;
  const Int128 beside = std::min(distance(std::nextafter(value, infinity)),
                                 distance(std::nextafter(value, -infinity)));
  const bool even = std::bit_cast<std::uint64_t>(value) % 2 == 0;
  return here < beside || (here == beside && even);
}

}  // namespace

TEST_CASE("a sum of squares is the exact sum of squares rounded to 2^-86") {
  std::mt19937_64 random(Catch::getSeed());
  for (const std::int64_t n : {0, 1, 2, 1000, 40001}) {
    const auto x = spread(random, n, -60, 10);
    Int128 want = 0;
    for (const float v : x) want += units_of(static_cast<double>(v) * v);
    const Total total = total_of(sum_of_squares_exact, x);
    CHECK(total.limbs == canonical(want));
    CHECK(total.non_finite == 0);
  }
}

TEST_CASE("the exact sum of squares has the same limbs for any cut, order and number of threads") {
  std::mt19937_64 random(Catch::getSeed());
  auto x = spread(random, 50021, -149, 36);
  const Total whole = total_of(sum_of_squares_exact, x, 1);
  CHECK(whole.non_finite == 0);
  for (int trial = 0; trial < 5; ++trial) {
    Total parts;
    for (std::size_t at = 0; at < x.size();) {
      const std::size_t n = std::min<std::size_t>(random() % 20000, x.size() - at);
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(at);
      add(parts, sum_of_squares_exact, {first, first + static_cast<std::ptrdiff_t>(n)}, 3);
      at += n;
    }
    CHECK(parts == whole);
    std::shuffle(x.begin(), x.end(), random);
    CHECK(total_of(sum_of_squares_exact, x) == whole);
  }
}

TEST_CASE("accumulators of ranks may be added limb by limb") {
  std::mt19937_64 random(Catch::getSeed());
  const auto x = spread(random, 30000, -50, 30);
  Accumulator sum{};
  for (std::size_t at = 0; at < x.size(); at += 1000) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(at);
    const Total part = total_of(sum_of_squares_exact, {first, first + 1000});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part.limbs[i];
  }
  const Total whole = total_of(sum_of_squares_exact, x);
  CHECK(scalar_value(sum) == whole.value());
  Total normalised{sum, 0};
  add(normalised, sum_of_squares_exact, {0.0f});
  CHECK(normalised == whole);
}

TEST_CASE("squares of 2^74 and more, and what is not finite, are counted instead") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {
      3.0f,     0x1p37f,   -0x1p37f,     std::numeric_limits<float>::max(),
      infinity, -infinity, std::nanf("")};
  const Total exact = total_of(sum_of_squares_exact, x);
  CHECK(exact.non_finite == 6);
  CHECK(exact.value() == 9.0);
  const float last = std::nextafter(0x1p37f, 0.0f);
  const Total largest = total_of(sum_of_squares_exact, {last});
  CHECK(largest.non_finite == 0);
  CHECK(largest.value() == static_cast<double>(last) * last);
}

TEST_CASE("a total beyond the last limb is counted instead of wrapping") {
  Total total;
  total.limbs[3] = std::numeric_limits<std::int64_t>::max();
  const Total before = total;
  add(total, sum_of_squares_exact, {0x1p18f});
  CHECK(total.limbs == before.limbs);
  CHECK(total.non_finite == 1);
  add(total, sum_of_squares_exact, {1.0f});
  CHECK(total.non_finite == 1);
  CHECK(total.limbs[2] == 64);
}

TEST_CASE("the fast sum of squares is the block sums in double, and the same for any threads") {
  std::mt19937_64 random(Catch::getSeed());
  for (const std::int64_t n : {0, 1, 15, 16, 17, 16384, 16385, 100003}) {
    const auto x = spread(random, n, -20, 10);
    double want = 0;
    for (const float v : x) want += static_cast<double>(v) * v;
    const Total total = total_of(sum_of_squares_fast, x, 1);
    CHECK(total.non_finite == 0);
    CHECK(std::abs(total.value() - want) <= 1e-12 * want + static_cast<double>(n) * 0x1p-86);
    CHECK(total_of(sum_of_squares_fast, x, 3) == total);
  }
}

TEST_CASE("the fast sum of squares counts what spoiled it") {
  std::vector<float> x(40000, 1.0f);
  x[3] = std::nanf("");
  x[4] = std::numeric_limits<float>::infinity();
  x[39999] = -std::numeric_limits<float>::infinity();
  const Total total = total_of(sum_of_squares_fast, x);
  CHECK(total.non_finite == 3);
  CHECK(total.value() == 16384.0);  // the block between
  CHECK(total_of(sum_of_squares_fast, {1e20f, 1.0f}).non_finite == 1);
}

TEST_CASE("sum_into adds every value exactly, of either sign, in any order") {
  std::mt19937_64 random(Catch::getSeed());
  auto x = spread(random, 40001, -60, 12);
  Int128 want = 0;
  for (const float v : x) want += units_of(v);
  const Total total = total_of(sum_into, x);
  CHECK(total.limbs == canonical(want));
  CHECK(total.non_finite == 0);
  std::shuffle(x.begin(), x.end(), random);
  CHECK(total_of(sum_into, x, 3) == total);
  CHECK(total_of(sum_into, {-2.5f}).value() == -2.5);
  CHECK(total_of(sum_into, {-2.5f}).limbs[3] == -1);
  CHECK(total_of(sum_into, {}) == Total{});
  const Total bad = total_of(sum_into, {1.0f, std::nanf(""), 2.0f});
  CHECK(bad.non_finite == 1);
  CHECK(bad.value() == 3.0);
  CHECK(total_of(sum_into, {1e23f}).non_finite == 1);
}

TEST_CASE("a scalar's value is rounded once to nearest even, whatever its limbs") {
  std::mt19937_64 random(Catch::getSeed());
  for (int trial = 0; trial < 40000; ++trial) {
    Accumulator limbs;
    for (std::int64_t& limb : limbs)
      limb = static_cast<std::int64_t>(random()) >> (1 + random() % 63);
    limbs[3] >>= 14;  // so that differences fit 128 bits
    if (trial % 3 == 0) limbs[3] = 0;
    if (trial % 9 == 0) limbs[2] = 0;
    if (trial % 5 == 0) limbs[1] = limbs[0] = 0;
    INFO(limbs[0] << ", " << limbs[1] << ", " << limbs[2] << ", " << limbs[3]);
    REQUIRE(is_nearest(scalar_value(limbs), limbs));
  }
  const std::int64_t one = std::int64_t{1} << 33;  // 2^-6 * 2^33 = 2^27, and 2^-26 is half its step
  CHECK(scalar_value({0, std::int64_t{1} << 20, one, 0}) == 0x1p27);
  CHECK(scalar_value({1, std::int64_t{1} << 20, one, 0}) == 0x1p27 + 0x1p-25);
  CHECK(scalar_value({0, 3 * (std::int64_t{1} << 20), one, 0}) == 0x1p27 + 0x1p-24);
  CHECK(scalar_value({-1, std::int64_t{1} << 20, one, 0}) == 0x1p27);
  CHECK(scalar_value({0, 0, 0, 0}) == 0.0);
  CHECK(scalar_value({-1, 0, 0, 0}) == -0x1p-86);
}

TEST_CASE("scalar sums refuse wrong operands") {
  CpuStream stream("test");
  std::vector<float> x(3);
  std::vector<bf16> h(3);
  std::vector<std::int64_t> limbs(4), three(3), count(1);
  for (const Sum sum : {sum_of_squares_exact, sum_of_squares_fast, sum_into}) {
    CHECK_THROWS_AS(sum(view_of(h), view_of(limbs), view_of(count), stream), ArgumentError);
    CHECK_THROWS_AS(sum(view_of(x), view_of(three), view_of(count), stream), ArgumentError);
    CHECK_THROWS_AS(sum(view_of(x), view_of(limbs), view_of(three), stream), ArgumentError);
    CHECK_THROWS_AS(sum(Tensor{}, view_of(limbs), view_of(count), stream), ArgumentError);
  }
}
