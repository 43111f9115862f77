#include "collectives/reduce.h"

#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/collectives/suite.h"

namespace sherd::test {
namespace {

/// The reduction of `count` random sources.
struct Sources {
  Sources(DType dtype, std::int64_t numel, int count) {
    for (int r = 0; r < count; ++r) bytes.push_back(random_bytes(dtype, numel, 1, r));
    for (const Bytes& source : bytes) pointers.push_back(source.data());
  }
  std::vector<Bytes> bytes;
  std::vector<const void*> pointers;
};

}  // namespace

TEST_CASE("reductions are made in the order of the sources, for every dtype") {
  const DType dtype =
      GENERATE(DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64);
  const std::int64_t numel = GENERATE(0, 1, 15, 2047, 2048, 2049, 10007);
  const int count = GENERATE(1, 2, 3, 7);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
    CAPTURE(name_of(dtype), numel, count, static_cast<int>(op));
    const Sources sources(dtype, numel, count);
    Bytes out(static_cast<std::size_t>(numel * size_of(dtype)), std::byte{0xA5});
    reduce_sources(sources.pointers, dtype, numel, op, out.data(), dtype);
    REQUIRE(out == reduced(sources.bytes, dtype, dtype, op));
    if (size_of(dtype) == 2) {
      Bytes wide(static_cast<std::size_t>(numel) * sizeof(float), std::byte{0xA5});
      reduce_sources(sources.pointers, dtype, numel, op, wide.data(), DType::f32);
      REQUIRE(wide == reduced(sources.bytes, dtype, DType::f32, op));
    }
  }
}

TEST_CASE("the result may overwrite any of the sources") {
  const std::size_t which = GENERATE(0u, 1u, 2u);
  constexpr std::int64_t kNumel = 5000;
  Sources sources(DType::bf16, kNumel, 3);
  const Bytes expected = reduced(sources.bytes, DType::bf16, DType::bf16, ReduceOp::sum);
  reduce_sources(sources.pointers, DType::bf16, kNumel, ReduceOp::sum, sources.bytes[which].data(),
                 DType::bf16);
  CHECK(sources.bytes[which] == expected);
}

TEST_CASE("16-bit sums are rounded once, at the end") {
  // 256 + 1 + 1 is 258 in bf16, but 256 + 1 alone is rounded back to 256.
  const bf16 big(256.0f);
  const bf16 one(1.0f);
  const std::vector<const void*> sources{&big, &one, &one};
  bf16 out;
  reduce_sources(sources, DType::bf16, 1, ReduceOp::sum, &out, DType::bf16);
  CHECK(static_cast<float>(out) == 258.0f);
}

TEST_CASE("integer sums wrap around instead of overflowing") {
  const std::int64_t a = std::numeric_limits<std::int64_t>::max();
  const std::int64_t b = 2;
  const std::vector<const void*> sources{&a, &b};
  std::int64_t out = 0;
  reduce_sources(sources, DType::i64, 1, ReduceOp::sum, &out, DType::i64);
  CHECK(out == std::numeric_limits<std::int64_t>::min() + 1);
}

TEST_CASE("min and max keep a NaN from any place, and are signed") {
  const ReduceOp op = GENERATE(ReduceOp::min, ReduceOp::max);
  for (std::size_t bad = 0; bad < 3; ++bad) {
    std::vector<float> values{1.0f, -2.0f, 3.0f};
    values[bad] = std::nanf("");
    const std::vector<const void*> sources{&values[0], &values[1], &values[2]};
    float out = 0.0f;
    reduce_sources(sources, DType::f32, 1, op, &out, DType::f32);
    CHECK(std::isnan(out));
  }
  const std::int32_t a = -5;
  const std::int32_t b = 3;
  const std::vector<const void*> sources{&a, &b};
  std::int32_t out = 0;
  reduce_sources(sources, DType::i32, 1, op, &out, DType::i32);
  CHECK(out == (op == ReduceOp::min ? -5 : 3));
}

TEST_CASE("reductions that mean nothing are refused") {
  const std::int64_t value = 0;
  const std::vector<const void*> sources{&value};
  std::int64_t out = 0;
  CHECK_THROWS_AS(reduce_sources(sources, DType::u8, 1, ReduceOp::sum, &out, DType::u8),
                  ArgumentError);
  CHECK_THROWS_AS(reduce_sources(sources, DType::f32, 1, ReduceOp::sum, &out, DType::f64),
                  ArgumentError);
  CHECK_THROWS_AS(reduce_sources(sources, DType::i32, 1, ReduceOp::sum, &out, DType::f32),
                  ArgumentError);
}

}  // namespace sherd::test
