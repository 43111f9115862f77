#include "kernels/fast_math.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tests/kernels/test_tensor.h"

using namespace sherd;

namespace {

double units_in_last_place(float got, double want) {
  const float nearest = std::abs(static_cast<float>(want));
  const float next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
  return std::abs(got - want) / (static_cast<double>(next) - nearest);
}

float cdf(float x) { return fast_normal_cdf(x, fast_gaussian(x)); }

}  // namespace

TEST_CASE("fast exp and sigmoid are within a few units in the last place") {
  test::Random random;
  double exp_error = 0, sigmoid_error = 0, pair_error = 0;
  for (const double v : random.values(300000, -86.8, 86.8)) {
    const auto x = static_cast<float>(v);
    exp_error = std::max(exp_error, units_in_last_place(fast_exp(x), std::exp(double{x})));
    const SigmoidPair pair = fast_sigmoid_pair(x);
    CHECK(pair.value == fast_sigmoid(x));
    pair_error =
        std::max(pair_error, units_in_last_place(pair.complement, 1 / (1 + std::exp(double{x}))));
    sigmoid_error = std::max(sigmoid_error,
                             units_in_last_place(fast_sigmoid(x), 1 / (1 + std::exp(-double{x}))));
  }
  CHECK(exp_error <= 2.0);
  CHECK(sigmoid_error <= 3.0);
  CHECK(pair_error <= 5.0);
}

TEST_CASE("the normal distribution function keeps its relative accuracy in the lower tail") {
  test::Random random;
  double error = 0;
  for (const double v : random.values(300000, -6, 9)) {
    const auto x = static_cast<float>(v);
    const double want = std::erfc(-double{x} / std::numbers::sqrt2) / 2;
    error = std::max(error, std::abs(cdf(x) - want) / want);
  }
  CHECK(error <= 2e-6);
}

TEST_CASE("fast tanh keeps its relative accuracy, near zero too") {
  test::Random random;
  double error = 0;
  for (const double range : {1e-30, 1e-3, 0.3, 2.0, 12.0}) {
    for (const double v : random.values(100000, -range, range)) {
      const auto x = static_cast<float>(v);
      error = std::max(error, units_in_last_place(fast_tanh(x), std::tanh(double{x})));
      CHECK(std::signbit(fast_tanh(x)) == std::signbit(x));
    }
  }
  CHECK(error <= 5.0);
}

TEST_CASE("fast functions have the limits of the real ones") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  CHECK(fast_exp(0.0f) == 1.0f);
  CHECK(fast_exp(-kInfinity) == 0.0f);
  CHECK(fast_exp(-87.0f) == 0.0f);
  CHECK(fast_exp(kInfinity) == kInfinity);
  CHECK(fast_exp(88.8f) == kInfinity);
  CHECK(std::isfinite(fast_exp(88.72f)));
  CHECK(std::isnan(fast_exp(kNaN)));
  CHECK(fast_sigmoid(0.0f) == 0.5f);
  CHECK(fast_sigmoid(kInfinity) == 1.0f);
  CHECK(fast_sigmoid(-kInfinity) == 0.0f);
  CHECK(std::isnan(fast_sigmoid(kNaN)));
  CHECK(fast_tanh(0.0f) == 0.0f);
  CHECK(fast_tanh(kInfinity) == 1.0f);
  CHECK(fast_tanh(-kInfinity) == -1.0f);
  CHECK(std::isnan(fast_tanh(kNaN)));
  CHECK(std::abs(cdf(0.0f) - 0.5f) <= 0x1p-24f);
  CHECK(cdf(50.0f) == 1.0f);
  CHECK(cdf(-50.0f) == 0.0f);
  CHECK(std::isnan(cdf(kNaN)));
}

TEST_CASE("an element has the same bits in a vector loop and alone") {
  test::Random random;
  std::vector<float> x, together(1003);
  for (const double v : random.values(1003, -90, 90)) x.push_back(static_cast<float>(v));
#pragma omp simd
  for (std::size_t i = 0; i < x.size(); ++i) {
    together[i] = fast_exp(x[i]) + fast_sigmoid(x[i]) + fast_normal_cdf(x[i], fast_gaussian(x[i])) +
                  fast_tanh(x[i]);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const volatile float apart = x[i];
    const float v = apart;
    CHECK(together[i] ==
          fast_exp(v) + fast_sigmoid(v) + fast_normal_cdf(v, fast_gaussian(v)) + fast_tanh(v));
  }
}
