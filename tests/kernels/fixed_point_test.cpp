#include "kernels/fixed_point.h"

#include <algorithm>
#include <bit>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/elementwise.h"
#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;

namespace {

using Int128 = __int128;
using Limbs = std::vector<std::int64_t>;  // [2, n]

Tensor limbs_view(Limbs& limbs) {
  return view_of(limbs).view({kLimbs, static_cast<std::int64_t>(limbs.size()) / kLimbs});
}

template <class T>
void split(std::vector<T>& x, Limbs& limbs, bool accumulate, std::int64_t& non_finite) {
  std::vector<std::int64_t> count{non_finite};
  run([&](Stream& s) {
    to_fixed_point(view_of(x), limbs_view(limbs), accumulate, view_of(count), s);
  });
  non_finite = count[0];
}

Limbs split(std::vector<float> x) {
  Limbs limbs = poisoned<std::int64_t>(2 * static_cast<std::int64_t>(x.size()));
  std::int64_t non_finite = 0;
  split(x, limbs, false, non_finite);
  CHECK(non_finite == 0);
  return limbs;
}

std::vector<float> join(Limbs limbs) {
  auto x = poisoned<float>(static_cast<std::int64_t>(limbs.size()) / 2);
  run([&](Stream& s) { from_fixed_point(limbs_view(limbs), view_of(x), s); });
  return x;
}

/// Whether `x` is `units` * 2^-66 rounded once to nearest even, by exact integers.
bool is_nearest(float x, Int128 units) {
  const double scaled = std::ldexp(static_cast<double>(x), 66);
  if (scaled != std::nearbyint(scaled)) return false;
  const auto as_units = [](double v) { return static_cast<Int128>(v); };
  const Int128 error = units - as_units(scaled);
  const Int128 distance = error < 0 ? -error : error;
  if (units < (1 << 24) && units > -(1 << 24)) return distance == 0;
  const double towards = error < 0 ? -INFINITY : INFINITY;
  const float neighbour = std::nextafter(x, static_cast<float>(towards));
  const Int128 to_neighbour = as_units(std::ldexp(static_cast<double>(neighbour), 66)) - units;
  const Int128 other = to_neighbour < 0 ? -to_neighbour : to_neighbour;
  const bool even = std::bit_cast<std::uint32_t>(x) % 2 == 0;
  return distance < other || (distance == other && even);
}

/// Magnitudes from 1e-30 to 1e4, both signs, some zeros.
std::vector<float> spread(std::mt19937_64& random, std::int64_t n) {
  std::uniform_real_distribution<double> exponent(-30, 4);
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = std::pow(10.0, exponent(random));
    x.push_back(static_cast<float>(random() % 2 == 0 ? value : -value));
    if (random() % 50 == 0) x.back() = 0.0f;
  }
  return x;
}

}  // namespace

TEST_CASE("a float becomes the nearest multiple of 2^-26 and of 2^-66 of what is left") {
  std::mt19937_64 random(Catch::getSeed());
  const std::vector<float> x = spread(random, 40000);
  const Limbs limbs = split(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    const double high = std::nearbyint(std::ldexp(value, 26));
    const double low = std::nearbyint(std::ldexp(value - std::ldexp(high, -26), 66));
    INFO("x = " << x[i]);
    REQUIRE(static_cast<double>(limbs[i]) == high);
    REQUIRE(static_cast<double>(limbs[i + x.size()]) == low);
  }
}

TEST_CASE("floats of 2^-43 and more come back as they went in") {
  std::mt19937_64 random(Catch::getSeed());
  std::vector<float> x;
  while (x.size() < 30000) {
    const float v = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::abs(v) >= 0x1p-43f && std::abs(v) < kFixedPointLimit) x.push_back(v);
  }
  x.insert(x.end(), {0.0f, 0x1p-43f, -0x1p-43f, std::nextafter(kFixedPointLimit, 0.0f)});
  CHECK(same_bits(join(split(x)), x));
}

TEMPLATE_TEST_CASE("what is too large or not finite is counted, and adds nothing", "", float, bf16,
                   f16) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<TestType> x;
  for (const float v : {1.0f, 16384.0f, -16384.0f, infinity, -infinity, std::nanf(""), 16320.0f}) {
    x.push_back(TestType(v));
  }
  Limbs limbs = poisoned<std::int64_t>(14);
  std::int64_t non_finite = 10;
  split(x, limbs, false, non_finite);
  CHECK(non_finite == 15);
  const std::int64_t one = 1 << 26;
  CHECK(limbs == Limbs{one, 0, 0, 0, 0, 0, 16320 * one, 0, 0, 0, 0, 0, 0, 0});
  split(x, limbs, true, non_finite);
  CHECK(non_finite == 20);
  CHECK(limbs == Limbs{2 * one, 0, 0, 0, 0, 0, 32640 * one, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("sums have the same bits in any order and any grouping, and are rounded once") {
  std::mt19937_64 random(Catch::getSeed());
  constexpr std::int64_t kTerms = 24, kNumel = 3001;
  std::vector<std::vector<float>> terms;
  for (std::int64_t t = 0; t < kTerms; ++t) terms.push_back(spread(random, kNumel));
  for (std::size_t t = 1; t < terms.size(); t += 3) {  // near cancellations
    for (std::size_t i = 0; i < terms[t].size(); i += 2) {
      terms[t][i] = -std::nextafter(terms[t - 1][i], 0.0f);
    }
  }
  const auto summed = [&](std::vector<std::size_t> order) {
    std::int64_t non_finite = 0;
    Limbs total(2 * kNumel, 0);
    for (std::size_t at = 0; at < order.size();) {
      const std::size_t group = std::min<std::size_t>(1 + random() % 5, order.size() - at);
      Limbs part = poisoned<std::int64_t>(2 * kNumel);
      for (std::size_t k = 0; k < group; ++k) split(terms[order[at + k]], part, k > 0, non_finite);
      run([&](Stream& s) { accumulate_into(view_of(part), view_of(total), s); });
      at += group;
    }
    CHECK(non_finite == 0);
    return total;
  };
  std::vector<std::size_t> order(kTerms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const Limbs first = summed(order);
  for (int trial = 0; trial < 8; ++trial) {
    std::shuffle(order.begin(), order.end(), random);
    CHECK(summed(order) == first);
  }
  const auto sums = join(first);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Int128 units = (static_cast<Int128>(first[i]) << 40) + first[i + kNumel];
    REQUIRE(is_nearest(sums[i], units));
    double want = 0;
    for (const auto& term : terms) want += term[i];
    REQUIRE(std::abs(sums[i] - want) <= kTerms * 0x1p-67 + 0x1p-24 * std::abs(want) + 1e-11);
  }
}

TEST_CASE("from_fixed_point rounds any limbs once to nearest even") {
  std::mt19937_64 random(Catch::getSeed());
  Limbs limbs;
  constexpr std::size_t kNumel = 60000;
  for (std::size_t i = 0; i < 2 * kNumel; ++i) {
    const auto bits = static_cast<std::int64_t>(random());
    limbs.push_back(bits >> (random() % 63));
  }
  for (std::size_t i = 0; i < 2000; ++i) {  // exact ties and just beside them
    const int shift = static_cast<int>(i % 36);
    const auto odd = static_cast<std::int64_t>((random() % (1 << 24)) | (1 << 24) | 1);
    const Int128 units = (static_cast<Int128>(odd) << (shift + 1)) + static_cast<int>(i % 3) - 1;
    limbs[i] = static_cast<std::int64_t>(units >> 40);
    limbs[i + kNumel] = static_cast<std::int64_t>(units - (static_cast<Int128>(limbs[i]) << 40));
  }
  const auto x = join(limbs);
  for (std::size_t i = 0; i < kNumel; ++i) {
    const Int128 units = (static_cast<Int128>(limbs[i]) << 40) + limbs[i + kNumel];
    INFO("limbs " << limbs[i] << ", " << limbs[i + kNumel] << " gave " << x[i]);
    REQUIRE(is_nearest(x[i], units));
  }
}

TEST_CASE("fixed point takes empty tensors and refuses wrong operands") {
  CHECK(split({}).empty());
  CHECK(join({}).empty());
  CpuStream stream("test");
  std::vector<float> x(3);
  std::vector<bf16> h(3);
  Limbs limbs(6), flat(6), count(1), two(2);
  const auto to = [&](const Tensor& from, const Tensor& l, const Tensor& c) {
    to_fixed_point(from, l, false, c, stream);
  };
  CHECK_THROWS_WITH(to(view_of(x), view_of(flat), view_of(count)),
                    Catch::Matchers::ContainsSubstring("expected i64 [2, 3]"));
  CHECK_THROWS_AS(to(view_of(x), limbs_view(limbs), view_of(two)), ArgumentError);
  CHECK_THROWS_AS(to(view_of(flat), limbs_view(limbs), view_of(count)), ArgumentError);
  CHECK_THROWS_AS(from_fixed_point(limbs_view(limbs), view_of(h), stream), ArgumentError);
  CHECK_THROWS_AS(from_fixed_point(view_of(flat), view_of(x), stream), ArgumentError);
}
