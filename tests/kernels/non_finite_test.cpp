#include "kernels/non_finite.h"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <set>

#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

using namespace sherd;
using namespace sherd::test;

namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

using Found = std::vector<std::int64_t>;

template <class T>
Found find(std::vector<T>& x, std::int64_t first_index, Found found = {0, kNone}) {
  run([&](Stream& s) { find_non_finite(view_of(x), first_index, view_of(found), s); }, 3);
  return found;
}

}  // namespace

TEMPLATE_TEST_CASE("finite values, the largest and smallest too, are not found", "", float, bf16,
                   f16) {
  std::vector<TestType> x(40000, TestType(0.0f));
  x[1] = TestType(-65504.0f);
  x[2] = TestType(65504.0f * (sizeof(TestType) == 2 ? 0.99f : 1.0f));
  x[3] = TestType(1e-7f);
  if constexpr (std::is_same_v<TestType, float>) x[4] = std::numeric_limits<float>::max();
  CHECK(find(x, 5) == Found{0, kNone});
  CHECK(find(x, 5, {3, 9}) == Found{3, 9});
}

TEMPLATE_TEST_CASE("NaNs and infinities are counted and the first is named", "", float, bf16, f16) {
  Random random;
  const float bad[] = {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(), std::nanf(""), -std::nanf("1")};
  for (const std::int32_t n : {1, 2, 1000, 16384, 16385, 70001}) {
    std::vector<TestType> x(static_cast<std::size_t>(n), TestType(1.5f));
    std::set<std::int32_t> at;
    for (const std::int32_t i : random.integers(5, n)) at.insert(i);
    int kind = 0;
    for (const std::int32_t i : at) x[static_cast<std::size_t>(i)] = TestType(bad[kind++ % 4]);
    const auto count = static_cast<std::int64_t>(at.size());
    CHECK(find(x, 1000) == Found{count, 1000 + *at.begin()});
    CHECK(find(x, 1000, {7, 3}) == Found{7 + count, 3});
  }
}

TEST_CASE("nothing is found in nothing, and wrong operands are refused") {
  std::vector<float> empty, x(3);
  CHECK(find(empty, 0) == Found{0, kNone});
  CpuStream stream("test");
  std::vector<std::int64_t> one(1), two(2);
  CHECK_THROWS_AS(find_non_finite(view_of(x), 0, view_of(one), stream), ArgumentError);
  CHECK_THROWS_AS(find_non_finite(view_of(x), 0, view_of(x), stream), ArgumentError);
  CHECK_THROWS_AS(find_non_finite(view_of(two), 0, view_of(two), stream), ArgumentError);
}
