#include "kernels/attention.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::at;
using oracle::AttentionSize;
using Mask = std::vector<std::int32_t>;

namespace {

/// Operands of one attention, with a mask that hides a third of the keys, or none.
struct AttentionCase {
  AttentionCase(DType type, AttentionSize s, bool masked)
      : size(s),
        dtype(type),
        packed{s.batch, s.tokens, s.slots(), s.width},
        qkv(type, packed, random.values(packed.numel(), -2, 2)),
        dout(type, {s.batch, s.tokens, s.heads, s.width},
             random.values(s.batch * s.tokens * s.heads * s.width)),
        out(type, {s.batch, s.tokens, s.heads, s.width}),
        lse(DType::f32, {s.batch, s.heads, s.tokens}),
        dqkv(type, packed),
        mask({s.batch, s.tokens}, Mask(static_cast<std::size_t>(s.batch * s.tokens), 1)) {
    if (masked) {
      hidden = random.integers(s.batch * s.tokens, 3);
      mask = TestTensor({s.batch, s.tokens}, hidden);
    }
  }

  AttentionSpec spec() const {
    return {static_cast<int>(size.heads), static_cast<int>(size.kv_heads), size.causal,
            static_cast<float>(size.scale)};
  }
  Tensor mask_or_none() { return hidden.empty() ? Tensor() : Tensor(mask); }
  void compute(Stream& stream) {
    attention_forward(qkv, mask_or_none(), out, lse, spec(), stream);
    attention_backward(dout, qkv, mask_or_none(), out, lse, dqkv, spec(), stream);
  }
  double largest_score() const { return 4.0 * size.scale * static_cast<double>(size.width); }
  /// Roundings add up over heads of `width`, over keys, and for key gradients over queries and
  /// group; 16-bit outputs enter the gradient rounded.
  Tolerance tolerance(DType type) const {
    const double slope = largest_score();
    const double reductions = static_cast<double>(size.width + size.tokens) + 32;
    const double half = dtype == DType::f32 ? 0.0 : rounding_of(dtype) / 0x1p-24;
    const auto queries = static_cast<double>(size.heads) / static_cast<double>(size.kv_heads);
    return {type, reductions + 2 * half, (1 + slope) * queries};
  }

  Random random;
  AttentionSize size;
  DType dtype;
  Shape packed;
  TestTensor qkv, dout, out, lse, dqkv, mask;
  Mask hidden;
};

void check_against_oracle(AttentionCase& c) {
  run([&](Stream& stream) { c.compute(stream); });
  const oracle::Attention want = oracle::attention(c.qkv.values(), c.hidden, c.size);
  // A score's rounding is relative to the score, and changes its weight by so much.
  const double roundings = 64 + 4 * c.largest_score();
  check_close(c.out.values(), want.out, {c.dtype, roundings, 2});
  check_close(c.lse.values(), want.lse, {DType::f32, roundings, 4});
  const Values gradient =
      oracle::attention_gradient(c.dout.values(), c.qkv.values(), c.hidden, c.size);
  check_close(c.dqkv.values(), gradient, c.tolerance(c.dtype));
}

}  // namespace

TEST_CASE("attention and its gradient agree with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool masked = GENERATE(false, true);
  AttentionSize size =
      GENERATE(AttentionSize{0, 3, 2, 1, 4, true, .5}, AttentionSize{1, 1, 1, 1, 1, true, 1},
               AttentionSize{2, 5, 3, 3, 7, true, .4}, AttentionSize{2, 63, 2, 1, 8, true, .35},
               AttentionSize{1, 65, 4, 2, 16, true, .25}, AttentionSize{1, 130, 6, 2, 5, true, .4});
  size.causal = GENERATE(true, false);
  AttentionCase c(dtype, size, masked);
  check_against_oracle(c);
}

TEST_CASE("attention over several tiles of keys agrees with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t tokens = GENERATE(127, 129, 300);
  const bool causal = GENERATE(true, false);
  AttentionCase c(dtype, {1, tokens, 2, 1, 4, causal, .5}, causal);
  check_against_oracle(c);
}

TEST_CASE("attention takes heads so wide that tiles get smaller") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t width = GENERATE(700, 5000);
  AttentionCase c(dtype, {1, 60, 1, 1, width, true, .02}, false);
  check_against_oracle(c);
}

TEST_CASE("the attention oracle's gradient is that of its forward pass") {
  const bool causal = GENERATE(true, false);
  const AttentionSize size{1, 4, 2, 1, 3, causal, 0.7};
  Random random;
  const Mask mask{1, 0, 1, 1};
  const Values qkv = random.values(48), dout = random.values(24);
  check_gradient([&](const Values& v) { return dot(dout, oracle::attention(v, mask, size).out); },
                 qkv, oracle::attention_gradient(dout, qkv, mask, size));
}

TEST_CASE("a query that may read nothing gives zero, passes no gradient and has lse -inf") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  AttentionCase c(dtype, {1, 70, 2, 1, 4, true, .5}, true);
  constexpr std::int64_t kHidden = 66;  // padding on the left
  c.hidden.assign(70, 0);
  std::fill(c.hidden.begin() + kHidden, c.hidden.end(), 1);
  c.mask = TestTensor({1, 70}, c.hidden);
  check_against_oracle(c);
  const Values out = c.out.values(), lse = c.lse.values(), dqkv = c.dqkv.values();
  CHECK(std::all_of(out.begin(), out.begin() + kHidden * 8, [](double v) { return v == 0; }));
  CHECK(std::all_of(dqkv.begin(), dqkv.begin() + kHidden * 16, [](double v) { return v == 0; }));
  CHECK(at(lse, kHidden - 1) == -INFINITY);
  CHECK(std::isfinite(at(lse, kHidden)));
}

TEST_CASE("large scores neither overflow nor lose the small ones") {
  AttentionCase c(DType::f32, {1, 9, 1, 1, 2, false, 60}, false);
  check_against_oracle(c);
}

TEST_CASE("a NaN in a key reaches every query that reads it, and no other") {
  AttentionCase c(DType::f32, {1, 80, 1, 1, 2, true, 1}, false);
  Values qkv = c.qkv.values();
  at(qkv, c.size.k(0, 70, 0)) = std::nan("");
  c.qkv.assign(qkv);
  run([&](Stream& stream) { c.compute(stream); });
  const Values out = c.out.values();
  for (std::int64_t t = 0; t < 80; ++t) CHECK(std::isnan(at(out, t * 2)) == (t >= 70));
}

TEST_CASE("attention gives the same bits for any number of threads") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  AttentionCase c(dtype, {2, 300, 6, 3, 8, true, .35}, true);
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{c.out, c.lse, c.dqkv};
    const Tensor mask = c.mask_or_none();
    attention_forward(c.qkv, mask, out[0], out[1], c.spec(), stream);
    attention_backward(c.dout, c.qkv, mask, out[0], out[1], out[2], c.spec(), stream);
    return out;
  });
}

TEST_CASE("attention refuses heads that do not group and operands that do not fit") {
  AttentionCase c(DType::f32, {1, 2, 4, 2, 3, true, 1}, false);
  TestTensor half(DType::bf16, {1, 2, 4, 3}), short_mask({1}, Mask{1});
  run([&](Stream& stream) {
    AttentionSpec three = c.spec(), one = c.spec();
    three.kv_heads = 3;
    one.kv_heads = 1;
    CHECK_THROWS_MATCHES(attention_forward(c.qkv, {}, c.out, c.lse, three, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("multiple of key heads, got 4 and 3")));
    CHECK_THROWS_MATCHES(
        attention_forward(c.qkv, {}, c.out, c.lse, one, stream), ArgumentError,
        MessageMatches(ContainsSubstring("qkv is f32 [1, 2, 8, 3], expected f32 [1, 2, 6, 3]")));
    CHECK_THROWS_AS(attention_forward(c.qkv, {}, half, c.lse, c.spec(), stream), ArgumentError);
    CHECK_THROWS_AS(attention_forward(c.qkv, short_mask, c.out, c.lse, c.spec(), stream),
                    ArgumentError);
    CHECK_THROWS_AS(attention_backward(half, c.qkv, {}, c.out, c.lse, c.dqkv, c.spec(), stream),
                    ArgumentError);
    CHECK_THROWS_AS(attention_backward(c.dout, c.qkv, {}, c.out, c.lse, half, c.spec(), stream),
                    ArgumentError);
  });
}
