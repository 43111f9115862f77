#pragma once

#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/cpu_stream.h"
#include "core/tensor.h"

namespace sherd::test {

using Values = std::vector<double>;

/// A tensor with its own bytes and a guard behind them. Floats start as NaN, integers as garbage.
class TestTensor {
 public:
  TestTensor(DType dtype, Shape shape)
      : bytes_(static_cast<std::size_t>(shape.numel() * size_of(dtype)) + kGuard, kPoison),
        dtype_(dtype),
        shape_(shape) {
    if (dtype != DType::i32) assign(Values(static_cast<std::size_t>(shape.numel()), std::nan("")));
  }
  TestTensor(DType dtype, Shape shape, const Values& values) : TestTensor(dtype, shape) {
    assign(values);
  }
  TestTensor(Shape shape, const std::vector<std::int32_t>& values) : TestTensor(DType::i32, shape) {
    REQUIRE(static_cast<std::int64_t>(values.size()) == shape.numel());
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), values.size() * 4);
  }

  operator Tensor() {  // NOLINT(google-explicit-constructor): a test tensor is a tensor
    return {bytes_.data(), dtype_, shape_};
  }
  Tensor view(Shape shape) { return Tensor(*this).view(shape); }
  DType dtype() const { return dtype_; }

  /// Rounds to the dtype.
  void assign(const Values& values) {
    REQUIRE(static_cast<std::int64_t>(values.size()) == shape_.numel());
    with_float(dtype_, [&]<class T>() {
      auto* to = reinterpret_cast<T*>(bytes_.data());
      for (const double v : values) *to++ = static_cast<T>(static_cast<float>(v));
    });
  }
  /// What the tensor holds; checks that nothing was written behind it.
  Values values() const {
    for (std::size_t i = bytes_.size() - kGuard; i < bytes_.size(); ++i) {
      REQUIRE(bytes_[i] == kPoison);
    }
    Values result(static_cast<std::size_t>(shape_.numel()));
    with_float(dtype_, [&]<class T>() {
      const auto* from = reinterpret_cast<const T*>(bytes_.data());
      for (double& v : result) v = static_cast<float>(*from++);
    });
    return result;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kPoison{0xA5};
  std::vector<std::byte> bytes_;
  DType dtype_;
  Shape shape_;
};

/// Fresh numbers in every run; the run's seed, which Catch2 prints, repeats them.
class Random {
 public:
  Random() : engine_(Catch::getSeed()) {}

  Values values(std::int64_t numel, double low = -1.0, double high = 1.0) {
    std::uniform_real_distribution<double> uniform(low, high);
    Values result(static_cast<std::size_t>(numel));
    for (double& v : result) v = uniform(engine_);
    return result;
  }
  std::vector<std::int32_t> integers(std::int64_t count, std::int32_t below) {
    std::uniform_int_distribution<std::int32_t> uniform(0, below - 1);
    std::vector<std::int32_t> result(static_cast<std::size_t>(count));
    for (std::int32_t& v : result) v = uniform(engine_);
    return result;
  }
  /// A tensor full of `values`.
  TestTensor tensor(DType dtype, Shape shape, double low = -1.0, double high = 1.0) {
    return {dtype, shape, values(shape.numel(), low, high)};
  }

 private:
  std::mt19937_64 engine_;
};

/// Runs `f(stream)` on a CPU stream of `threads` threads and waits; errors of the stream come out.
template <class F>
void run(F f, int threads = 2) {
  CpuStream stream("test", threads);
  f(stream);
  stream.synchronize();
}

/// `f(stream)` computes tensors and returns them; they must have the same bits for 1 and 3 threads.
template <class F>
void check_threads_change_nothing(F f) {
  using Results = std::vector<TestTensor>;
  Results one, three;
  run(
      [&](Stream& stream) {
        one = f(stream);
        stream.synchronize();
      },
      1);
  run(
      [&](Stream& stream) {
        three = f(stream);
        stream.synchronize();
      },
      3);
  REQUIRE(one.size() == three.size());
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].bytes() == three[i].bytes());
}

/// Half a unit in the last place, relative: what one rounding to `dtype` costs.
inline double rounding_of(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

/// What a result of `dtype` may differ from the oracle by: one rounding of the result, and
/// `roundings` float roundings of intermediate values of size `magnitude`.
struct Tolerance {
  DType dtype = DType::f32;
  double roundings = 8;
  double magnitude = 1;

  double at(double want) const {
    constexpr double kSmallestF16 = 0x1p-25;
    return 1.01 * rounding_of(dtype) * std::abs(want) + roundings * 0x1p-24 * magnitude +
           (dtype == DType::f16 ? kSmallestF16 : 0.0);
  }
};

inline void check_close(const Values& got, const Values& want, const Tolerance& tolerance) {
  REQUIRE(got.size() == want.size());
  std::size_t worst = 0;
  double worst_excess = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    const double excess = std::abs(got[i] - want[i]) / tolerance.at(want[i]);
    if (excess <= worst_excess) continue;  // NaN goes on
    worst = i;
    worst_excess = std::isnan(excess) ? 1e300 : excess;
  }
  if (worst_excess < 0) return;
  INFO("element " << worst << " is " << got[worst] << ", the oracle has " << want[worst]);
  CHECK(worst_excess <= 1.0);
}

/// The gradient of `f` (values to one number) at `at` by central differences, against `gradient`.
template <class F>
void check_gradient(const F& f, const Values& at, const Values& gradient) {
  constexpr double kStep = 1e-5;
  REQUIRE(at.size() == gradient.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    Values moved = at;
    moved[i] += kStep;
    const double above = f(moved);
    moved[i] -= 2 * kStep;
    const double slope = (above - f(moved)) / (2 * kStep);
    INFO("element " << i);
    CHECK(std::abs(slope - gradient[i]) <= 1e-7 * (1 + std::abs(slope)));
  }
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline Values sum(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace sherd::test
