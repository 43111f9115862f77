#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "kernels/attention.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::StartsWith;
using oracle::at;
using oracle::AttentionSize;
using MaskBits = std::vector<std::int32_t>;

namespace {

enum class Padding { none, right, left, random };
constexpr Padding kPaddings[] = {Padding::none, Padding::right, Padding::left, Padding::random};

struct AttentionCase {
  AttentionCase(DType type, AttentionSize s, Padding padding)
      : size(s),
        dtype(type),
        packed{s.batch, s.tokens, s.slots(), s.width},
        qkv(random.tensor(type, packed, -2, 2)),
        dout(random.tensor(type, {s.batch, s.tokens, s.heads, s.width})),
        out(type, {s.batch, s.tokens, s.heads, s.width}),
        lse(DType::f32, {s.batch, s.heads, s.tokens}),
        dqkv(type, packed),
        real(mask_of(padding)),
        mask({s.batch, s.tokens},
             real.empty() ? MaskBits(static_cast<std::size_t>(s.batch * s.tokens), 1) : real) {}

  AttentionSpec spec() const {
    return {static_cast<int>(size.heads), static_cast<int>(size.kv_heads), size.causal,
            static_cast<float>(size.scale), deterministic};
  }
  std::int64_t scratch_bytes() const {
    return attention_scratch_bytes(size.batch, size.tokens, size.width, dtype, spec());
  }
  /// Both passes with the planned scratch and no byte more.
  void compute(Gpu& gpu, std::int64_t shift = 0) {
    gpu.lend_scratch(scratch_bytes());
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      const Tensor tokens = real.empty() ? Tensor() : on(mask);
      const Tensor x = on(qkv, shift), y = on(out, shift), sums = on(lse);
      attention_forward(x, tokens, y, sums, spec(), stream);
      attention_backward(on(dout, shift), x, tokens, y, sums, on(dqkv, shift), spec(), stream);
    });
  }
  void check_against_oracle() {
    const oracle::Attention want = oracle::attention(qkv.values(), real, size);
    // Weights are rounded to 16 bits before they weigh values of up to 2, and have as a relative
    // error the absolute one of their scores: two roundings of the largest.
    const double of_scores = 2 * largest_score();
    check_close(out.values(), want.out, {dtype, std::max(64.0, of_scores) + 2 * half(), 2});
    check_close(lse.values(), want.lse, {DType::f32, 64, 4});
    check_close(dqkv.values(), oracle::attention_gradient(dout.values(), qkv.values(), real, size),
                gradient_tolerance());
  }

  Random random;
  AttentionSize size;
  DType dtype;
  Shape packed;
  TestTensor qkv, dout, out, lse, dqkv;
  MaskBits real;  ///< empty: no mask
  TestTensor mask;
  bool deterministic = false;

 private:
  /// Of the first sample everything is real, and of the others some.
  MaskBits mask_of(Padding padding) {
    if (padding == Padding::none) return {};
    MaskBits bits(static_cast<std::size_t>(size.batch * size.tokens), 1);
    for (std::int64_t i = size.tokens; i < size.batch * size.tokens; ++i) {
      const std::int64_t token = i % size.tokens, third = size.tokens / 3;
      bool shown = random.integers(1, 3)[0] != 0;
      if (padding == Padding::right) shown = token < size.tokens - third;
      if (padding == Padding::left) shown = token >= third;
      bits[static_cast<std::size_t>(i)] = shown ? 1 : 0;
    }
    return bits;
  }
  double largest_score() const { return 4.0 * size.scale * static_cast<double>(size.width); }
  /// One rounding to 16 bits, in roundings to f32.
  double half() const { return dtype == DType::f32 ? 0.0 : rounding_of(dtype) / 0x1p-24; }
  /// Roundings add up over heads of `width`, over keys, and for key gradients over queries and
  /// group; weights, slopes and outputs enter the gradient rounded to 16 bits.
  Tolerance gradient_tolerance() const {
    const double slope = largest_score();
    const double reductions = static_cast<double>(size.width + size.tokens) + 32;
    const auto group = static_cast<double>(size.heads) / static_cast<double>(size.kv_heads);
    return {dtype, reductions + 4 * half(), (1 + slope) * group};
  }
};

/// Every size causal and not, with every padding; f(case).
template <class F>
void for_each_case(DType dtype, std::initializer_list<AttentionSize> sizes, F f) {
  for (AttentionSize size : sizes) {
    for (const bool causal : {true, false}) {
      for (const Padding padding : kPaddings) {
        size.causal = causal;
        INFO(size.batch << " x " << size.tokens << " tokens, " << size.heads << " / "
                        << size.kv_heads << " heads of " << size.width << ", causal " << causal
                        << ", padding " << static_cast<int>(padding));
        AttentionCase c(dtype, size, padding);
        f(c);
      }
    }
  }
}

}  // namespace

TEST_CASE("on a GPU attention of odd shapes agrees with the oracle", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Gpu gpu;
  for_each_case(dtype,
                {{0, 3, 2, 1, 4, {}, .5},
                 {1, 1, 1, 1, 1, {}, 1},
                 {2, 5, 3, 3, 7, {}, .4},
                 {2, 63, 2, 1, 8, {}, .35},
                 {2, 65, 4, 2, 16, {}, .25},
                 {2, 130, 6, 2, 5, {}, .4},
                 {2, 70, 1, 1, 100, {}, .1},
                 {2, 40, 2, 1, 131, {}, .08}},
                [&](AttentionCase& c) {
                  c.compute(gpu);
                  c.check_against_oracle();
                });
}

TEST_CASE("on a GPU attention of usual heads agrees with the oracle", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool deterministic = GENERATE(false, true);
  Gpu gpu(std::int64_t{256} << 20);
  for_each_case(dtype,
                {{3, 128, 2, 2, 64, {}, .125},
                 {2, 100, 4, 2, 64, {}, .125},
                 {2, 257, 3, 1, 128, {}, .088},
                 {2, 64, 2, 1, 256, {}, .0625}},
                [&](AttentionCase& c) {
                  c.deterministic = deterministic;
                  c.compute(gpu);
                  c.check_against_oracle();
                });
}

TEST_CASE("on a GPU attention at odd addresses agrees with the oracle", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Gpu gpu;
  for_each_case(dtype, {{2, 100, 4, 2, 64, {}, .125}, {2, 130, 2, 1, 128, {}, .088}},
                [&](AttentionCase& c) {
                  c.compute(gpu, size_of(dtype));
                  c.check_against_oracle();
                });
}

TEST_CASE("on a GPU attention over many tiles agrees with the oracle", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Gpu gpu(std::int64_t{256} << 20);
  for_each_case(dtype, {{2, 1030, 2, 1, 64, {}, .125}}, [&](AttentionCase& c) {
    c.compute(gpu);
    c.check_against_oracle();
  });
}

TEST_CASE("on a GPU deterministic attention has the same bits in every run", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const Padding padding = GENERATE(Padding::none, Padding::right, Padding::random);
  Gpu one(std::int64_t{256} << 20), other(std::int64_t{256} << 20);
  AttentionCase c(dtype, {3, 700, 4, 2, 64, true, .125}, padding);
  c.deterministic = true;
  c.compute(one);
  const auto out = c.out.bytes(), lse = c.lse.bytes(), dqkv = c.dqkv.bytes();
  for (int i = 0; i < 6; ++i) {
    c.compute(i % 2 == 0 ? one : other);
    CHECK(c.out.bytes() == out);
    CHECK(c.lse.bytes() == lse);
    CHECK(c.dqkv.bytes() == dqkv);
  }
}

TEST_CASE("on a GPU a query that may read nothing gives zero and passes no gradient", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t width = GENERATE(4, 64);
  constexpr std::int64_t kTokens = 70, kHidden = 66;  // padding on the left
  Gpu gpu;
  AttentionCase c(dtype, {1, kTokens, 2, 1, width, true, .2}, Padding::random);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    c.real[static_cast<std::size_t>(t)] = t < kHidden ? 0 : 1;
  }
  c.mask = TestTensor({1, kTokens}, c.real);
  c.compute(gpu);
  c.check_against_oracle();
  const Values out = c.out.values(), lse = c.lse.values(), dqkv = c.dqkv.values();
  const auto is_zero = [](double v) { return v == 0; };
  CHECK(std::all_of(out.begin(), out.begin() + kHidden * 2 * width, is_zero));
  CHECK(std::all_of(dqkv.begin(), dqkv.begin() + kHidden * 4 * width, is_zero));
  CHECK(at(lse, kHidden - 1) == -INFINITY);
  CHECK(std::isfinite(at(lse, kHidden)));
}

TEST_CASE("on a GPU attention over a sample of nothing but padding is zero", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Gpu gpu;
  AttentionCase c(dtype, {2, 128, 2, 1, 64, false, .125}, Padding::right);
  std::fill(c.real.begin() + 128, c.real.end(), 0);
  c.mask = TestTensor({2, 128}, c.real);
  c.compute(gpu);
  c.check_against_oracle();
}

TEST_CASE("on a GPU large scores neither overflow nor lose the small ones", "[gpu]") {
  Gpu gpu;
  AttentionCase c(DType::f32, {1, 9, 1, 1, 2, false, 60}, Padding::none);
  c.compute(gpu);
  c.check_against_oracle();
}

TEST_CASE("on a GPU a NaN in a key reaches every query that reads it, and no other", "[gpu]") {
  Gpu gpu;
  AttentionCase c(DType::f32, {1, 80, 1, 1, 2, true, 1}, Padding::none);
  Values qkv = c.qkv.values();
  at(qkv, c.size.k(0, 70, 0)) = std::nan("");
  c.qkv.assign(qkv);
  c.compute(gpu);
  const Values out = c.out.values();
  for (std::int64_t t = 0; t < 80; ++t) CHECK(std::isnan(at(out, t * 2)) == (t >= 70));
}

TEST_CASE("on a GPU every shape names its engine", "[gpu]") {
  Gpu gpu;
  const AttentionSpec spec{4, 2, true, 0.125f};
  const auto engine = [&](DType dtype, std::int64_t width, bool masked) {
    return attention_engine({2, 256, 8, width}, dtype, masked, spec, gpu.stream());
  };
  CHECK_THAT(engine(DType::f32, 64, false), StartsWith("own kernels ("));
  CHECK_THAT(engine(DType::bf16, 60, false), StartsWith("own kernels ("));
  const std::string usual = engine(DType::bf16, 64, false);
  CAPTURE(usual);
  // Where there is a cuDNN, it takes the usual heads, both passes.
  CHECK((usual.starts_with("own kernels (there is no cuDNN") ||
         (usual.starts_with("cuDNN ") && usual.find("own") == std::string::npos)));
  CHECK(engine(DType::f16, 128, false) == usual);
  CHECK(engine(DType::bf16, 128, true) == usual);
}

TEST_CASE("on a GPU attention refuses heads that are too wide and scratch that is too small",
          "[gpu]") {
  Gpu gpu;
  AttentionCase wide(DType::f32, {1, 2, 1, 1, 257, true, 1}, Padding::none);
  CHECK_THROWS_MATCHES(wide.compute(gpu), ArgumentError,
                       MessageMatches(ContainsSubstring("up to 256 wide, got 257")));
  AttentionCase c(DType::f32, {1, 2, 1, 1, 4, true, 1}, Padding::none);
  gpu.lend_scratch(0);
  CHECK_THROWS_MATCHES(gpu.run([&](Stream& stream, Gpu::Twins& on) {
    attention_backward(on(c.dout), on(c.qkv), {}, on(c.out), on(c.lse), on(c.dqkv), c.spec(),
                       stream);
  }),
                       ArgumentError, MessageMatches(ContainsSubstring("bytes of scratch")));
}

TEST_CASE("the scratch of attention is known without a device") {
  AttentionSpec spec{32, 8, true, 0.1f};
  const auto bytes = [&](std::int64_t tokens, DType dtype) {
    return attention_scratch_bytes(2, tokens, 128, dtype, spec);
  };
  const std::int64_t rows = std::int64_t{2} * 4096 * 32;
  CHECK(bytes(4096, DType::f32) >= rows * 4);  // row dots of the own kernels
  CHECK(bytes(4096, DType::f32) < rows * 5);   // and little else
  CHECK(bytes(4096, DType::bf16) >= rows * 128 * 4);
  CHECK(bytes(4096, DType::bf16) < 2 * bytes(4095, DType::bf16));
  const std::int64_t fast = bytes(1024, DType::bf16);
  spec.deterministic = true;
  CHECK(bytes(1024, DType::bf16) >= std::int64_t{2} * 32 * 1024 * 1024 * 2);
  CHECK(bytes(1024, DType::bf16) >= fast);
  // Slopes of all scores would take 16 GiB: not planned, the own kernels need none.
  CHECK(bytes(16384, DType::bf16) < std::int64_t{4} << 30);
}

TEST_CASE("attention on CPUs names its engine") {
  CpuStream stream("test", 1);
  CHECK(attention_engine({1, 2, 3, 4}, DType::f32, false, {}, stream) == "tiles through CBLAS");
}
