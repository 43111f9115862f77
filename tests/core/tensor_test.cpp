#include "core/tensor.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a shape knows its rank, extents and numel") {
  const Shape none;
  CHECK(none.rank() == 0);
  CHECK(none.numel() == 0);
  const Shape s{2, 3, 5};
  CHECK(s.rank() == 3);
  CHECK(s.numel() == 30);
  CHECK(s[0] == 2);
  CHECK(s[-1] == 5);
  CHECK(s[-3] == 2);
  CHECK(Shape{4, 0, 7}.numel() == 0);
  CHECK(Shape{1 << 20, 1 << 20}.numel() == std::int64_t{1} << 40);
  CHECK(to_string(s) == "[2, 3, 5]");
  CHECK(to_string(none) == "[]");
  CHECK(s == Shape{2, 3, 5});
  CHECK_FALSE(s == Shape{2, 3, 5, 1});
  CHECK_FALSE(s == Shape{2, 5, 3});
}

TEST_CASE("a shape has at most four dimensions, none of them negative") {
  CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5}),
                    ContainsSubstring("at most 4") && ContainsSubstring("got 5"));
  CHECK_THROWS_WITH((Shape{2, -1}), ContainsSubstring("-1"));
}

TEST_CASE("a shape has no more elements than a machine could hold") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  CHECK_THROWS_WITH((Shape{kHuge, kHuge}), ContainsSubstring("more elements than 2^48"));
  CHECK((Shape{kHuge, 0, kHuge}.numel()) == 0);
  CHECK((Shape{kHuge, 256}.numel()) == Shape::kMostElements);
}

TEST_CASE("a default-constructed tensor is not there, an empty one is") {
  CHECK_FALSE(Tensor{}.defined());
  CHECK(Tensor{}.numel() == 0);
  CHECK(Tensor(nullptr, DType::f32, {0}).defined());
}

TEST_CASE("views, flat ranges and rows point at the elements they name") {
  std::array<float, 24> data{};
  const Tensor t(data.data(), DType::f32, {4, 3, 2});
  CHECK(t.size_bytes() == 96);
  CHECK(t.view({6, 4}).shape() == Shape{6, 4});
  CHECK(t.view({24}).as<float>() == data.data());
  const Tensor flat = t.flat({5, 7});
  CHECK(flat.as<float>() == data.data() + 5);
  CHECK(flat.shape() == Shape{7});
  CHECK(t.flat({24, 0}).numel() == 0);
  const Tensor rows = t.rows(1, 2);
  CHECK(rows.as<float>() == data.data() + 6);
  CHECK(rows.shape() == Shape{2, 3, 2});
  CHECK(t.rows(4, 0).shape() == Shape{0, 3, 2});
  CHECK(t.view({24}).rows(23, 1).as<float>() == data.data() + 23);
  CHECK(t.view({4, 6}).rows(3, 1).shape() == Shape{1, 6});
  CHECK(t.view({2, 2, 3, 2}).rows(1, 1).shape() == Shape{1, 2, 3, 2});
  CHECK(Tensor(data.data(), DType::f32, {0, 3}).rows(0, 0).shape() == Shape{0, 3});
}

TEST_CASE("ranges outside a tensor, views of another size and wrong dtypes are refused") {
  std::array<std::int32_t, 6> data{};
  const Tensor t(data.data(), DType::i32, {3, 2});
  CHECK_THROWS_WITH(t.view({7}), ContainsSubstring("[3, 2]") && ContainsSubstring("[7]"));
  CHECK_THROWS_AS(t.flat({5, 2}), ArgumentError);
  CHECK_THROWS_AS(t.flat({-1, 2}), ArgumentError);
  CHECK_THROWS_AS(t.flat({0, -1}), ArgumentError);
  CHECK_THROWS_AS(t.rows(2, 2), ArgumentError);
  CHECK_THROWS_AS(t.rows(-1, 1), ArgumentError);
  CHECK_THROWS_AS(Tensor{}.rows(0, 0), ArgumentError);
  CHECK(t.as<std::int32_t>() == data.data());
  CHECK_THROWS_WITH(t.as<float>(),
                    ContainsSubstring("expected a f32") && ContainsSubstring("got i32 [3, 2]"));
}
