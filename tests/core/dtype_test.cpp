#include "core/dtype.h"

#include <algorithm>
#include <bit>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sherd;

namespace {

template <class T>
T from_bits(std::uint16_t bits) {
  return std::bit_cast<T>(bits);
}
template <class T>
std::uint16_t bits_of(T x) {
  return std::bit_cast<std::uint16_t>(x);
}

/// The finite non-negative values in order; their position is their bit pattern.
template <class T>
std::vector<double> values() {
  std::vector<double> result;
  for (std::uint16_t bits = 0; bits < 0x8000; ++bits) {
    const auto value = static_cast<float>(from_bits<T>(bits));
    if (!std::isfinite(value)) break;
    result.push_back(value);
  }
  return result;
}

/// Nearest value by search, ties to the even bit pattern; past half a step above the last:
/// infinity.
std::uint16_t nearest(const std::vector<double>& table, float value) {
  const double x = std::abs(static_cast<double>(value));
  const auto infinity = static_cast<std::uint16_t>(table.size());
  auto above =
      static_cast<std::uint16_t>(std::lower_bound(table.begin(), table.end(), x) - table.begin());
  if (above > 0) {
    const double low = table[above - 1u];
    const double high = above < infinity ? table[above] : 2 * low - table[above - 2u];
    const double down = x - low, up = high - x;
    if (down < up || (down == up && above % 2 == 1)) --above;
  }
  return static_cast<std::uint16_t>(above | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

TEMPLATE_TEST_CASE("16-bit floats survive the way to float and back", "", bf16, f16) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto x = from_bits<TestType>(static_cast<std::uint16_t>(bits));
    const auto wide = static_cast<float>(x);
    if (std::isnan(wide)) {
      REQUIRE(std::isnan(static_cast<float>(TestType(wide))));
    } else {
      REQUIRE(bits_of(TestType(wide)) == bits);
    }
  }
}

TEMPLATE_TEST_CASE("floats round to the nearest 16-bit float, ties to even", "", bf16, f16) {
  const auto table = values<TestType>();
  const auto check = [&](float x) {
    INFO("x = " << x << ", bits " << std::bit_cast<std::uint32_t>(x));
    REQUIRE(bits_of(TestType(x)) == nearest(table, x));
    REQUIRE(bits_of(TestType(-x)) == nearest(table, -x));
  };
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < 200000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(x)) check(x);
  }
  for (std::size_t i = 0; i + 1 < table.size(); ++i) {  // every tie and its neighbours
    const auto tie = static_cast<float>((table[i] + table[i + 1]) / 2);
    check(tie);
    check(std::nextafter(tie, 0.0f));
    check(std::nextafter(tie, std::numeric_limits<float>::infinity()));
  }
  check(0.0f);
  check(std::numeric_limits<float>::denorm_min());
  check(std::numeric_limits<float>::max());
  check(65519.996f);
  check(65520.0f);
}

TEMPLATE_TEST_CASE("infinity and NaN stay what they are", "", bf16, f16) {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(TestType(infinity)) == infinity);
  CHECK(static_cast<float>(TestType(-infinity)) == -infinity);
  for (const std::uint32_t bits :
       {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu, 0xffffffffu}) {
    CHECK(std::isnan(static_cast<float>(TestType(std::bit_cast<float>(bits)))));
  }
}

TEST_CASE("dtypes have names, sizes and element types") {
  CHECK(size_of(DType::u8) == 1);
  CHECK(size_of(DType::i16) == 2);
  CHECK(size_of(DType::f16) == sizeof(f16));
  CHECK(size_of(DType::bf16) == sizeof(bf16));
  CHECK(size_of(DType::i32) == 4);
  CHECK(size_of(DType::f32) == 4);
  CHECK(size_of(DType::i64) == 8);
  CHECK(size_of(DType::f64) == 8);
  CHECK(name_of(DType::bf16) == "bf16");
  CHECK(name_of(DType::u8) == "u8");
  CHECK(dtype_of<f16>() == DType::f16);
  CHECK(dtype_of<double>() == DType::f64);
}

TEST_CASE("with_float hands over the element type and refuses integers") {
  const auto size = []<class T>() { return static_cast<int>(sizeof(T)); };
  CHECK(with_float(DType::f32, size) == 4);
  CHECK(with_float(DType::bf16, size) == 2);
  CHECK(with_float(DType::f16, size) == 2);
  CHECK_THROWS_WITH(with_float(DType::i64, size),
                    Catch::Matchers::ContainsSubstring("expected f32, bf16 or f16, got i64"));
}
