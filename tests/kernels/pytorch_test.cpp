#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "tests/kernels/fixture.h"

using namespace sherd;
using namespace sherd::test;

namespace {

constexpr auto kOverwrite = Accumulate::no;

/// `got` against the tensor `name` of the fixture; the values of these cases are a few units large.
void check(const Fixture& fixture, const TestTensor& got, const std::string& name,
           double roundings = 40) {
  INFO(name);
  check_close(got.values(), fixture.values(name), {DType::f32, roundings, 4});
}

}  // namespace

TEST_CASE("attention agrees with PyTorch") {
  const std::string name = GENERATE("attention_causal", "attention_full", "attention_grouped",
                                    "attention_mask_causal", "attention_mask_full");
  const Fixture fixture(name);
  TestTensor qkv = fixture.tensor("qkv"), dout = fixture.tensor("dout");
  TestTensor out = fixture.empty("out"), dqkv = fixture.empty("dqkv");
  TestTensor mask({1}, std::vector<std::int32_t>{1});
  if (fixture.has("mask")) mask = fixture.tensor("mask");
  const Tensor mask_or_none = fixture.has("mask") ? Tensor(mask) : Tensor();
  const Shape shape = fixture.shape("out");
  TestTensor lse(DType::f32, {shape[0], shape[2], shape[1]});
  const auto heads = static_cast<int>(shape[2]);
  const auto kv_heads = (static_cast<int>(fixture.shape("qkv")[2]) - heads) / 2;
  const bool causal = name.find("full") == std::string::npos;
  const AttentionSpec spec{heads, kv_heads, causal, 1 / std::sqrt(static_cast<float>(shape[3]))};
  run([&](Stream& stream) {
    attention_forward(qkv, mask_or_none, out, lse, spec, stream);
    attention_backward(dout, qkv, mask_or_none, out, lse, dqkv, spec, stream);
  });
  check(fixture, out, "out");
  check(fixture, dqkv, "dqkv");
}

TEST_CASE("layer norm agrees with PyTorch") {
  const Fixture fixture("layer_norm");
  TestTensor x = fixture.tensor("x"), weight = fixture.tensor("weight");
  TestTensor bias = fixture.tensor("bias"), dy = fixture.tensor("dy"), y = fixture.empty("y");
  TestTensor dx = fixture.empty("dx"), dweight = fixture.empty("dweight");
  TestTensor dbias = fixture.empty("dbias"), mean(DType::f32, {15}), rstd(DType::f32, {15});
  run([&](Stream& stream) {
    layer_norm_forward(x, weight, bias, y, mean, rstd, 1e-5f, stream);
    layer_norm_backward(dy, x, weight, mean, rstd, {}, dx, dweight, dbias, kOverwrite, stream);
  });
  check(fixture, y, "y");
  check(fixture, dx, "dx");
  check(fixture, dweight, "dweight");
  check(fixture, dbias, "dbias");
}

TEST_CASE("RMS norm agrees with PyTorch") {
  const Fixture fixture("rms_norm");
  TestTensor x = fixture.tensor("x"), weight = fixture.tensor("weight"), dy = fixture.tensor("dy");
  TestTensor y = fixture.empty("y"), dx = fixture.empty("dx"), dweight = fixture.empty("dweight");
  TestTensor rstd(DType::f32, {15});
  run([&](Stream& stream) {
    rms_norm_forward(x, weight, y, rstd, 1e-6f, stream);
    rms_norm_backward(dy, x, weight, rstd, {}, dx, dweight, kOverwrite, stream);
  });
  check(fixture, y, "y");
  check(fixture, dx, "dx");
  check(fixture, dweight, "dweight");
}

TEST_CASE("rope agrees with Hugging Face's Llama in every scaling") {
  const std::string name = GENERATE("rope", "rope_linear", "rope_llama3");
  const Fixture fixture(name);
  RopeSpec spec;
  if (name == "rope_linear") spec = {10000.0, RopeSpec::Scaling::linear, 4.0};
  if (name == "rope_llama3") spec = {500000.0, RopeSpec::Scaling::llama3, 8.0, 1.0, 4.0, 256};
  TestTensor qkv = fixture.tensor("qkv"), dout = fixture.tensor("dout");
  run([&](Stream& stream) {
    rope(qkv, 0, 4, spec, RopeDirection::forward, stream);
    rope(dout, 0, 4, spec, RopeDirection::backward, stream);
  });
  check(fixture, qkv, "out");
  check(fixture, dout, "dqkv");
}

TEST_CASE("activations agree with PyTorch") {
  using enum Activation;
  const auto row = GENERATE(table<Activation, std::string>(
      {{relu, "relu"}, {silu, "silu"}, {gelu_erf, "gelu_erf"}, {gelu_tanh, "gelu_tanh"}}));
  const Activation kind = std::get<0>(row);
  const std::string name = std::get<1>(row);
  const Fixture fixture("activation");
  TestTensor x = fixture.tensor("x"), dy = fixture.tensor("dy");
  TestTensor y = fixture.empty("x"), dx = fixture.empty("x");
  run([&](Stream& stream) {
    activation_forward(x, y, kind, stream);
    activation_backward(dy, x, {}, dx, kind, stream);
  });
  check(fixture, y, name + "_y", 4);
  check(fixture, dx, name + "_dx", 4);
}

TEST_CASE("SwiGLU agrees with PyTorch") {
  const Fixture fixture("swiglu");
  TestTensor gate_up = fixture.tensor("gate_up"), dy = fixture.tensor("dy");
  TestTensor y = fixture.empty("y"), dgate_up = fixture.empty("dgate_up");
  run([&](Stream& stream) {
    swiglu_forward(gate_up, y, stream);
    swiglu_backward(dy, gate_up, {}, dgate_up, stream);
  });
  check(fixture, y, "y", 16);
  check(fixture, dgate_up, "dgate_up", 16);
}

TEST_CASE("cross-entropy with ignored labels agrees with PyTorch") {
  const Fixture fixture("cross_entropy");
  TestTensor logits = fixture.tensor("logits"), labels = fixture.tensor("labels");
  TestTensor scale = fixture.tensor("scale"), losses = fixture.empty("losses");
  run([&](Stream& stream) {
    cross_entropy_forward_backward(logits, labels, losses, scale, stream);
  });
  check(fixture, losses, "losses", 4);
  check(fixture, logits, "dlogits", 2);
}

TEST_CASE("linear layers and embeddings agree with PyTorch") {
  const Fixture linear("linear"), embedding("embedding");
  TestTensor x = linear.tensor("x"), weight = linear.tensor("weight");
  TestTensor bias = linear.tensor("bias"), dy = linear.tensor("dy"), y = linear.empty("y");
  TestTensor dx = linear.empty("dx"), dw = linear.empty("dweight"), db = linear.empty("dbias");
  TestTensor tokens = embedding.tensor("tokens"), table = embedding.tensor("table");
  TestTensor dout = embedding.tensor("dout"), out = embedding.empty("out");
  TestTensor dtable = embedding.empty("dtable");
  run([&](Stream& stream) {
    const auto layout = WeightLayout::out_in;
    linear_forward(x, weight, bias, y, layout, stream);
    linear_backward_input(dy, weight, dx, layout, kOverwrite, stream);
    linear_backward_weight(x, dy, dw, layout, kOverwrite, stream);
    bias_backward(dy, db, kOverwrite, stream);
    embedding_forward(tokens, table, out, kOverwrite, stream);
    embedding_backward(tokens, dout, dtable, kOverwrite, stream);
  });
  check(linear, y, "y");
  check(linear, dx, "dx");
  check(linear, dw, "dweight");
  check(linear, db, "dbias");
  CHECK(out.values() == embedding.values("out"));
  check(embedding, dtable, "dtable");
}
