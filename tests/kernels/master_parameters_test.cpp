#include "kernels/master_parameters.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>

#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Every kind of float: a stride through all bit patterns, and the neighbourhood of all ties.
std::vector<float> all_kinds() {
  std::vector<float> result;
  const auto add = [&](std::uint32_t bits) { result.push_back(std::bit_cast<float>(bits)); };
  const std::uint32_t start = Catch::getSeed() % 9973;
  for (std::uint64_t bits = start; bits < (std::uint64_t{1} << 32); bits += 9973) {
    add(static_cast<std::uint32_t>(bits));
  }
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      add((high << 16) | low);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("bf16 value and remainder give every f32 master back, bit for bit") {
  auto master = all_kinds();
  const auto n = static_cast<std::int64_t>(master.size());
  auto value = poisoned<bf16>(n);
  auto remainder = poisoned<std::int16_t>(n);
  auto back = poisoned<float>(n);
  const MasterParameters at_rest{view_of(value), view_of(remainder)};
  run([&](Stream& s) {
    store_master(view_of(master), at_rest, s);
    load_master(at_rest, view_of(back), s);
  });
  CHECK(same_bits(back, master));
}

TEST_CASE("the bf16 value is the master rounded to nearest, ties away from zero") {
  auto master = all_kinds();
  const auto n = static_cast<std::int64_t>(master.size());
  auto value = poisoned<bf16>(n);
  auto remainder = poisoned<std::int16_t>(n);
  run([&](Stream& s) { store_master(view_of(master), {view_of(value), view_of(remainder)}, s); });
  for (std::size_t i = 0; i < master.size(); ++i) {
    const double exact = master[i], got = static_cast<float>(value[i]);
    if (!std::isfinite(exact)) continue;
    const auto beside = [&](int step) -> double {
      bf16 x = value[i];
      x.bits = static_cast<std::uint16_t>(x.bits + step);
      return static_cast<float>(x);
    };
    const int magnitude = value[i].bits & 0x7fff;
    bool nearest = std::signbit(got) == std::signbit(exact);
    if (std::abs(exact) >= 0x1.ffp127) {  // half a step above the largest bf16
      nearest = nearest && std::isinf(got);
    } else {
      const double distance = std::abs(got - exact);
      const bool last = magnitude == 0x7f7f;
      nearest = nearest && (last || distance < std::abs(beside(1) - exact)) &&
                (magnitude == 0 || distance <= std::abs(beside(-1) - exact));
    }
    if (!nearest) FAIL("master " << exact << " has value " << got);
  }
}

TEST_CASE("infinite masters keep infinite values, and usual NaNs stay NaN in the value") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> master = {infinity, -infinity, std::nanf(""), -std::nanf("")};
  std::vector<bf16> value(4);
  std::vector<std::int16_t> remainder(4);
  run([&](Stream& s) { store_master(view_of(master), {view_of(value), view_of(remainder)}, s); });
  CHECK(static_cast<float>(value[0]) == infinity);
  CHECK(static_cast<float>(value[1]) == -infinity);
  CHECK(std::isnan(static_cast<float>(value[2])));
  CHECK(std::isnan(static_cast<float>(value[3])));
}

TEST_CASE("f16 values are the master to nearest even beside it; f32 values are the master") {
  auto master = all_kinds();
  const auto n = static_cast<std::int64_t>(master.size());
  auto value = poisoned<f16>(n);
  auto wide = poisoned<float>(n), back = poisoned<float>(n), same = poisoned<float>(n);
  run([&](Stream& s) {
    store_master(view_of(master), {view_of(value), view_of(wide)}, s);
    load_master({view_of(value), view_of(wide)}, view_of(back), s);
    store_master(view_of(master), {view_of(same), {}}, s);
  });
  CHECK(same_bits(wide, master));
  CHECK(same_bits(back, master));
  CHECK(same_bits(same, master));
  std::vector<f16> want;
  want.reserve(master.size());
  for (const float m : master) want.emplace_back(m);
  CHECK(same_bits(value, want));
}

TEST_CASE("each value dtype names its master's") {
  CHECK_FALSE(master_dtype(DType::f32).has_value());
  CHECK(master_dtype(DType::bf16) == DType::i16);
  CHECK(master_dtype(DType::f16) == DType::f32);
  CHECK_THROWS_AS(master_dtype(DType::i32), ArgumentError);
}

TEST_CASE("parameters at rest of the wrong kind are refused") {
  CpuStream stream("test");
  std::vector<float> f(3), four(4), none;
  std::vector<bf16> b(3);
  std::vector<f16> h(3);
  std::vector<std::int16_t> r(3);
  const auto store = [&](MasterParameters p) { store_master(view_of(f), p, stream); };
  CHECK_THROWS_WITH(store({view_of(b), view_of(f)}), ContainsSubstring("master is f32 [3]") &&
                                                         ContainsSubstring("expected i16 [3]"));
  CHECK_THROWS_WITH(store({view_of(b), {}}), ContainsSubstring("master is undefined"));
  CHECK_THROWS_AS(store({view_of(h), view_of(r)}), ArgumentError);
  CHECK_THROWS_WITH(store({view_of(four), {}}), ContainsSubstring("value is f32 [4]"));
  CHECK_THROWS_WITH(store({view_of(f), view_of(f)}), ContainsSubstring("leave it undefined"));
  CHECK_THROWS_AS(store({view_of(r), {}}), ArgumentError);
  CHECK_THROWS_AS(store({{}, {}}), ArgumentError);
  CHECK_THROWS_AS(load_master({view_of(f), {}}, view_of(b), stream), ArgumentError);
  CHECK_NOTHROW(store_master(view_of(none), {view_of(none), {}}, stream));
}
