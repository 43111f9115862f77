#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "kernels/rope.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using oracle::RopeSize;

namespace {

RopeSpec any_spec() {
  using Scaling = RopeSpec::Scaling;
  RopeSpec spec;
  spec.scaling = GENERATE(Scaling::none, Scaling::linear, Scaling::llama3);
  if (spec.scaling != Scaling::none) spec.factor = 8.0;
  spec.original_max_positions = 512;  // so that heads of 32 have low, blended and high frequencies
  return spec;
}

constexpr RopeSize kSizes[] = {{0, 3, 2, 4, 0, 2},    {1, 1, 1, 2, 0, 1},    {2, 7, 5, 6, 1, 3},
                               {2, 70, 4, 32, 0, 3},  {1, 5, 2, 130, 0, 2},  {1, 3, 2, 0, 0, 2},
                               {1, 4, 3, 8, 1, 0},    {3, 33, 6, 128, 1, 4}, {2, 3, 2, 2200, 0, 1},
                               {2, 1100, 3, 16, 0, 2}};

struct Rope {
  Rope(DType dtype, const RopeSize& s)
      : size(s), qkv(random.tensor(dtype, {s.batch, s.tokens, s.slots, s.width})) {}
  Random random;
  RopeSize size;
  TestTensor qkv;
};

}  // namespace

TEST_CASE("on a GPU rope rotates the named heads like the oracle, and back", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto direction = GENERATE(RopeDirection::forward, RopeDirection::backward);
  const RopeSpec spec = any_spec();
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu(0);
  for (const RopeSize& s : kSizes) {
    INFO("heads of " << s.width);
    const Rope start(dtype, s);
    const double sign = direction == RopeDirection::forward ? 1 : -1;
    const Values want = oracle::rope(start.qkv.values(), s, spec, sign);
    const auto body = [&](Rope& c, Stream& stream, auto&& on) {
      rope(on(c.qkv), static_cast<int>(s.first), static_cast<int>(s.heads), spec, direction,
           stream);
    };
    OnBoth<Rope>(gpu, start, body, shift).each([&](const Rope& c) {
      check_close(c.qkv.values(), want, {dtype, 4});
    });
  }
}

TEST_CASE("on a GPU rope stays exact at far positions", "[gpu]") {
  const RopeSize s{1, 40000, 1, 4, 0, 1};
  Rope c(DType::f32, s);
  const Values want = oracle::rope(c.qkv.values(), s, {}, 1);
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    rope(on(c.qkv), 0, 1, {}, RopeDirection::forward, stream);
  });
  check_close(c.qkv.values(), want, {DType::f32, 4});
}
