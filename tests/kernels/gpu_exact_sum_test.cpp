#include <array>
#include <bit>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <limits>

#include "kernels/fixed_point.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

// The integers of fixed-point tensors and of scalar accumulators are the CPU's.

namespace {

using Limbs = std::vector<std::int64_t>;
using Sum = void (*)(const Tensor&, const Tensor&, const Tensor&, Stream&);

/// Any bits at all: infinities, NaNs and subnormal numbers too.
std::vector<float> any_floats(std::mt19937_64& random, std::int64_t n) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return x;
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

template <class T>
struct Split {
  explicit Split(const std::vector<float>& from)
      : limbs(poisoned<std::int64_t>(2 * static_cast<std::int64_t>(from.size()))),
        back(poisoned<float>(static_cast<std::int64_t>(from.size()))) {
    for (const float v : from) x.push_back(T(v));
  }
  std::vector<T> x;
  Limbs limbs;
  Limbs non_finite{3};
  std::vector<float> back;
};

struct Total {
  std::vector<float> x;
  Limbs limbs{5, 7, 11, -13};
  Limbs non_finite{2};
};

void check_sums(Gpu& gpu, Sum sum, const std::vector<float>& x, std::int64_t shift) {
  INFO(x.size() << " values");
  gpu.lend_scratch(scalar_sum_scratch_bytes(static_cast<std::int64_t>(x.size())));
  const auto body = [&](Total& c, Stream& stream, auto&& on) {
    sum(on(c.x), on(c.limbs), on(c.non_finite), stream);
    sum(on(c.x), on(c.limbs), on(c.non_finite), stream);
  };
  const OnBoth<Total> both(gpu, Total{x}, body, shift);
  CHECK(both.gpu.limbs == both.cpu.limbs);
  CHECK(both.gpu.non_finite == both.cpu.non_finite);
}

}  // namespace

TEMPLATE_TEST_CASE("on a GPU fixed-point limbs are the CPU's, and so is what they give back",
                   "[gpu]", float, bf16, f16) {
  using Case = Split<TestType>;
  const std::int64_t shift = GENERATE(0, 1);
  std::mt19937_64 random(Catch::getSeed());
  Gpu gpu(0);
  for (const std::int64_t n : {0, 1, 2, 33, 40000, 40001}) {
    auto x = spread(random, n, -100, 14);
    const auto any = any_floats(random, n / 3);
    std::copy(any.begin(), any.end(), x.begin());
    const auto body = [&](Case& c, Stream& stream, auto&& on) {
      const Tensor limbs = on(c.limbs).view({kLimbs, n});
      to_fixed_point(on(c.x), limbs, false, on(c.non_finite), stream);
      to_fixed_point(on(c.x), limbs, true, on(c.non_finite), stream);
      from_fixed_point(limbs, on(c.back), stream);
    };
    const OnBoth<Case> both(gpu, Case(x), body, shift);
    CHECK(both.gpu.limbs == both.cpu.limbs);
    CHECK(both.gpu.non_finite == both.cpu.non_finite);
    CHECK(same_bits(both.gpu.back, both.cpu.back));
  }
}

TEST_CASE("on a GPU any limbs are rounded as on the CPU, ties too", "[gpu]") {
  using Case = Split<float>;
  std::mt19937_64 random(Catch::getSeed());
  constexpr std::size_t kNumel = 60000;
  Case start(std::vector<float>(kNumel, 0.0f));
  for (std::int64_t& limb : start.limbs) {
    limb = static_cast<std::int64_t>(random()) >> (random() % 63);
  }
  for (std::size_t i = 0; i < 2000; ++i) {
    const int shift = static_cast<int>(i % 36);
    const auto odd = static_cast<std::int64_t>((random() % (1 << 24)) | (1 << 24) | 1);
    const __int128 units =
        (static_cast<__int128>(odd) << (shift + 1)) + static_cast<int>(i % 3) - 1;
    start.limbs[i] = static_cast<std::int64_t>(units >> 40);
    start.limbs[i + kNumel] =
        static_cast<std::int64_t>(units - (static_cast<__int128>(start.limbs[i]) << 40));
  }
  Gpu gpu(0);
  const auto body = [](Case& c, Stream& stream, auto&& on) {
    from_fixed_point(on(c.limbs).view({kLimbs, kNumel}), on(c.back), stream);
  };
  const OnBoth<Case> both(gpu, start, body);
  CHECK(same_bits(both.gpu.back, both.cpu.back));
}

TEST_CASE("on a GPU scalar sums have the CPU's limbs", "[gpu]") {
  const Sum sum = GENERATE(&sum_of_squares_exact, &sum_of_squares_fast, &sum_into);
  const std::int64_t shift = GENERATE(0, 1);
  std::mt19937_64 random(Catch::getSeed());
  Gpu gpu;
  for (const std::int64_t n : {0, 1, 15, 17, 1000, 16384, 16385, 300007}) {
    check_sums(gpu, sum, spread(random, n, -60, 30), shift);
    check_sums(gpu, sum, any_floats(random, n), shift);
  }
}

TEST_CASE("on a GPU scalar sums count what spoils them as on the CPU", "[gpu]") {
  const Sum sum = GENERATE(&sum_of_squares_exact, &sum_of_squares_fast, &sum_into);
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(40000, 1.0f);
  x[3] = std::nanf("");
  x[4] = infinity;
  x[39999] = -infinity;
  Gpu gpu;
  check_sums(gpu, sum, x, 0);
  check_sums(gpu, sum, {1e20f, 1.0f}, 0);
  check_sums(gpu, sum, {3.0f, 0x1p37f, -0x1p37f, std::numeric_limits<float>::max()}, 0);
  Total full{{0x1p18f}};
  full.limbs = {0, 0, 0, std::numeric_limits<std::int64_t>::max()};
  const auto body = [&](Total& c, Stream& stream, auto&& on) {
    sum(on(c.x), on(c.limbs), on(c.non_finite), stream);
  };
  const OnBoth<Total> both(gpu, full, body);
  CHECK(both.gpu.limbs == both.cpu.limbs);
  CHECK(both.gpu.non_finite == both.cpu.non_finite);
}
