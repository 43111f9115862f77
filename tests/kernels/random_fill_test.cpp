#include "kernels/random_fill.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <numeric>
#include <vector>

#include "core/cpu_stream.h"
#include "core/error.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

namespace {

std::vector<double> filled(DType dtype, std::int64_t n) {
  CpuStream stream("test");
  TestTensor x(dtype, {n});
  fill_random(x, stream);
  stream.synchronize();
  return x.values();
}

}  // namespace

TEST_CASE("Random fillings are spread over [-1, 1), and the same each time") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t n = GENERATE(0, 1, 20001);
  CAPTURE(name_of(dtype), n);
  const std::vector<double> values = filled(dtype, n);
  CHECK(values == filled(dtype, n));
  for (const double v : values) REQUIRE(std::abs(v) <= 1.0);  // 1 itself by rounding to 16 bits
  if (n < 2) return;
  const auto count = static_cast<double>(n);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  CHECK(std::abs(mean) < 0.02);                         // its deviation is 0.004
  CHECK(std::abs(squares / count - 1.0 / 3.0) < 0.01);  // 0.002
}

TEST_CASE("Only float tensors are filled with random numbers") {
  CpuStream stream("test");
  TestTensor x(DType::i32, {4});
  CHECK_THROWS_AS(fill_random(x, stream), ArgumentError);
}

TEST_CASE("GPUs fill with the CPU's random numbers", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t n = GENERATE(0, 1, 20001);
  CAPTURE(name_of(dtype), n);
  Gpu gpu;
  TestTensor x(dtype, {n});
  gpu.run([&](Stream& stream, Gpu::Twins& on) { fill_random(on(x), stream); });
  CHECK(x.values() == filled(dtype, n));
}
