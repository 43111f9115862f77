#include "kernels/activation.h"

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

namespace {

Activation any_activation() {
  return GENERATE(Activation::relu, Activation::gelu_tanh, Activation::gelu_erf, Activation::silu,
                  Activation::tanh);
}

/// y [rows, width] of gate_up [rows, 2 * width].
Values swiglu(const Values& gate_up, std::int64_t rows, std::int64_t width) {
  Values y = oracle::zeros(rows * width);
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const std::int64_t gate = i / width * 2 * width + i % width;
    at(y, i) = oracle::activation(at(gate_up, gate), Activation::silu) * at(gate_up, gate + width);
  }
  return y;
}

Values swiglu_gradient(const Values& dy, const Values& gate_up, std::int64_t rows,
                       std::int64_t width) {
  Values d = oracle::zeros(2 * rows * width);
  for (std::int64_t i = 0; i < rows * width; ++i) {
    const std::int64_t gate = i / width * 2 * width + i % width;
    const double slope = oracle::activation_slope(at(gate_up, gate), Activation::silu);
    at(d, gate) = at(dy, i) * at(gate_up, gate + width) * slope;
    at(d, gate + width) = at(dy, i) * oracle::activation(at(gate_up, gate), Activation::silu);
  }
  return d;
}

}  // namespace

TEST_CASE("activations and their gradients agree with the oracle, in place and apart") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_activation();
  const std::int64_t numel = GENERATE(0, 1, 17, 16384, 40001);
  const bool in_place = GENERATE(false, true);
  Random random;
  TestTensor x(dtype, {numel}, random.values(numel, -8, 8));
  TestTensor dy(dtype, {numel}, random.values(numel));
  TestTensor y(dtype, {numel}), dx(dtype, {numel});
  Values want = x.values(), slope = dy.values();
  for (std::size_t i = 0; i < want.size(); ++i) {
    slope[i] *= oracle::activation_slope(want[i], kind);
    want[i] = oracle::activation(want[i], kind);
  }
  run([&](Stream& stream) {
    activation_backward(dy, x, {}, in_place ? dy : dx, kind, stream);
    activation_forward(x, in_place ? x : y, kind, stream);
  });
  check_close((in_place ? x : y).values(), want, {dtype, 4, 8});
  check_close((in_place ? dy : dx).values(), slope, {dtype, 8, 4});
}

TEST_CASE("gradients of activations make the activation again, in place and apart") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_activation();
  const bool in_place = GENERATE(false, true);
  Random random;
  TestTensor x = random.tensor(dtype, {40001}, -8, 8), dy = random.tensor(dtype, {40001});
  TestTensor y(dtype, {40001}), dx = y, y_again = y, dx_again = y;
  run([&](Stream& stream) {
    activation_forward(x, y, kind, stream);
    activation_backward(dy, x, {}, dx, kind, stream);
    activation_backward(dy, x, in_place ? dy : y_again, in_place ? x : dx_again, kind, stream);
  });
  CHECK((in_place ? dy : y_again).bytes() == y.bytes());
  CHECK((in_place ? x : dx_again).bytes() == dx.bytes());
}

TEST_CASE("SwiGLU and its gradient agree with the oracle, in place and apart") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool in_place = GENERATE(false, true);
  const std::int64_t rows = GENERATE(0, 1, 70), width = GENERATE(0, 1, 37, 300);
  Random random;
  TestTensor gate_up(dtype, {rows, 2 * width}, random.values(2 * rows * width, -6, 6));
  TestTensor dy(dtype, {rows, width}, random.values(rows * width));
  TestTensor y(dtype, {rows, width}), dgate_up(dtype, {rows, 2 * width});
  const Values want = swiglu(gate_up.values(), rows, width);
  const Values gradient = swiglu_gradient(dy.values(), gate_up.values(), rows, width);
  run([&](Stream& stream) {
    swiglu_forward(gate_up, y, stream);
    swiglu_backward(dy, gate_up, {}, dgate_up, stream);
  });
  check_close(y.values(), want, {dtype, 6, 36});
  check_close(dgate_up.values(), gradient, {dtype, 6, 36});

  TestTensor y_again(dtype, {rows, width}), dgate_up_again(dtype, {rows, 2 * width});
  TestTensor& y_place = in_place ? dy : y_again;
  TestTensor& gradient_place = in_place ? gate_up : dgate_up_again;
  run([&](Stream& stream) { swiglu_backward(dy, gate_up, y_place, gradient_place, stream); });
  CHECK(y_place.bytes() == y.bytes());
  CHECK(gradient_place.bytes() == dgate_up.bytes());
}

TEST_CASE("the activation oracles' gradients are those of their forward passes") {
  const Activation kind = any_activation();
  Random random;
  const Values x = random.values(50, -4, 4);
  Values slope = x;
  for (double& v : slope) v = oracle::activation_slope(v, kind);
  const auto total = [&](const Values& v) {
    double result = 0;
    for (const double value : v) result += oracle::activation(value, kind);
    return result;
  };
  check_gradient(total, x, slope);
  const Values gate_up = random.values(12), dy = random.values(6);
  check_gradient([&](const Values& v) { return dot(dy, swiglu(v, 2, 3)); }, gate_up,
                 swiglu_gradient(dy, gate_up, 2, 3));
}

TEST_CASE("activations pass NaN on and stay finite far out") {
  const Activation kind = any_activation();
  TestTensor x(DType::f32, {5}, {std::nan(""), -1e4, 1e4, -200, 200});
  TestTensor dy(DType::f32, {5}, Values(5, 1)), y(DType::f32, {5}), dx(DType::f32, {5});
  run([&](Stream& stream) {
    activation_forward(x, y, kind, stream);
    activation_backward(dy, x, {}, dx, kind, stream);
  });
  CHECK(std::isnan(y.values()[0]));
  CHECK(std::isnan(dx.values()[0]));
  for (std::size_t i = 1; i < 5; ++i) {
    const bool below = i % 2 == 1;
    if (kind == Activation::tanh) {
      CHECK(y.values()[i] == (below ? -1.0 : 1.0));
      CHECK(dx.values()[i] == 0.0);
      continue;
    }
    CHECK(y.values()[i] == (below ? 0.0 : x.values()[i]));
    CHECK(dx.values()[i] == (below ? 0.0 : 1.0));
  }
}

TEST_CASE("activations give the same bits for any number of threads") {
  Random random;
  const std::int64_t numel = 100001;
  TestTensor x(DType::f32, {numel}, random.values(numel)),
      dy(DType::f32, {numel}, random.values(numel));
  TestTensor gate_up = random.tensor(DType::f32, {101, 198});
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{{DType::f32, {numel}},   {DType::f32, {numel}},
                                {DType::f32, {101, 99}}, {DType::f32, {101, 198}},
                                {DType::f32, {numel}},   {DType::f32, {101, 99}}};
    activation_forward(x, out[0], Activation::gelu_erf, stream);
    activation_backward(dy, x, out[4], out[1], Activation::gelu_tanh, stream);
    swiglu_forward(gate_up, out[2], stream);
    swiglu_backward(out[2], gate_up, out[5], out[3], stream);
    return out;
  });
}

TEST_CASE("activations refuse operands that do not fit") {
  TestTensor x(DType::f32, {2, 3}), half(DType::bf16, {2, 3}), short_x(DType::f32, {2, 2});
  TestTensor gate_up(DType::f32, {2, 6});
  run([&](Stream& stream) {
    CHECK_THROWS_MATCHES(
        activation_forward(x, half, Activation::relu, stream), ArgumentError,
        MessageMatches(ContainsSubstring("y is bf16 [2, 3], expected f32 [2, 3]")));
    CHECK_THROWS_AS(activation_backward(x, short_x, {}, x, Activation::relu, stream),
                    ArgumentError);
    CHECK_THROWS_AS(activation_backward(x, x, half, x, Activation::relu, stream), ArgumentError);
    CHECK_THROWS_MATCHES(swiglu_forward(x, short_x, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("two halves, got [2, 3]")));
    CHECK_THROWS_AS(swiglu_forward(gate_up, short_x, stream), ArgumentError);
    CHECK_THROWS_AS(swiglu_backward(x, gate_up, {}, x, stream), ArgumentError);
    CHECK_THROWS_AS(swiglu_backward(x, gate_up, half, gate_up, stream), ArgumentError);
  });
}
