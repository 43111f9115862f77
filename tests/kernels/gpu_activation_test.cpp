#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/activation.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using oracle::at;

namespace {

struct Elementwise {
  Elementwise(DType dtype, std::int64_t numel)
      : x(random.tensor(dtype, {numel}, -8, 8)),
        dy(random.tensor(dtype, {numel})),
        y(dtype, {numel}),
        dx(dtype, {numel}) {}
  Random random;
  TestTensor x, dy, y, dx;
};

struct Swiglu {
  Swiglu(DType dtype, std::int64_t row_count, std::int64_t columns)
      : rows(row_count),
        width(columns),
        gate_up(random.tensor(dtype, {rows, 2 * width}, -6, 6)),
        dy(random.tensor(dtype, {rows, width})),
        y(dtype, {rows, width}),
        dgate_up(dtype, {rows, 2 * width}) {}

  /// What y and dgate_up become.
  Values forward() const {
    const Values from = gate_up.values();
    Values want = oracle::zeros(rows * width);
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const std::int64_t gate = i / width * 2 * width + i % width;
      at(want, i) = oracle::activation(at(from, gate), Activation::silu) * at(from, gate + width);
    }
    return want;
  }
  Values backward() const {
    const Values from = gate_up.values(), d = dy.values();
    Values want = oracle::zeros(2 * rows * width);
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const std::int64_t gate = i / width * 2 * width + i % width;
      const double slope = oracle::activation_slope(at(from, gate), Activation::silu);
      at(want, gate) = at(d, i) * at(from, gate + width) * slope;
      at(want, gate + width) = at(d, i) * oracle::activation(at(from, gate), Activation::silu);
    }
    return want;
  }

  Random random;
  std::int64_t rows, width;
  TestTensor gate_up, dy, y, dgate_up;
};

Activation any_activation() {
  return GENERATE(Activation::relu, Activation::gelu_tanh, Activation::gelu_erf, Activation::silu,
                  Activation::tanh);
}

}  // namespace

TEST_CASE("on a GPU activations agree with the oracle as on the CPU, in place and apart", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Activation kind = any_activation();
  const bool in_place = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu(0);
  for (const std::int64_t numel : {0, 1, 17, 2048, 40001}) {
    const Elementwise start(dtype, numel);
    Values want = start.x.values(), slope = start.dy.values();
    for (std::size_t i = 0; i < want.size(); ++i) {
      slope[i] *= oracle::activation_slope(want[i], kind);
      want[i] = oracle::activation(want[i], kind);
    }
    const auto body = [&](Elementwise& c, Stream& stream, auto&& on) {
      activation_backward(on(c.dy), on(c.x), {}, on(in_place ? c.dy : c.dx), kind, stream);
      activation_forward(on(c.x), on(in_place ? c.x : c.y), kind, stream);
    };
    OnBoth<Elementwise>(gpu, start, body, shift).each([&](const Elementwise& c) {
      check_close((in_place ? c.x : c.y).values(), want, {dtype, 4, 8});
      check_close((in_place ? c.dy : c.dx).values(), slope, {dtype, 8, 4});
    });
    const auto both = [&](Elementwise& c, Stream& stream, auto&& on) {
      activation_backward(on(c.dy), on(c.x), on(in_place ? c.dy : c.y), on(in_place ? c.x : c.dx),
                          kind, stream);
    };
    OnBoth<Elementwise>(gpu, start, both, shift).each([&](const Elementwise& c) {
      check_close((in_place ? c.dy : c.y).values(), want, {dtype, 4, 8});
      check_close((in_place ? c.x : c.dx).values(), slope, {dtype, 8, 4});
    });
  }
}

TEST_CASE("on a GPU activations pass NaN on and stay finite far out", "[gpu]") {
  const Activation kind = any_activation();
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  TestTensor x(dtype, {5}, {std::nan(""), -1e4, 1e4, -200, 200});
  TestTensor dy(dtype, {5}, Values(5, 1)), y(dtype, {5}), dx(dtype, {5});
  Gpu gpu(0);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    activation_forward(on(x), on(y), kind, stream);
    activation_backward(on(dy), on(x), {}, on(dx), kind, stream);
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

TEST_CASE("on a GPU SwiGLU agrees with the oracle as on the CPU, in place and apart", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool in_place = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  const std::int64_t rows = GENERATE(0, 1, 70), width = GENERATE(0, 1, 37, 304, 5000);
  Gpu gpu(0);
  const Swiglu start(dtype, rows, width);
  const auto body = [&](Swiglu& c, Stream& stream, auto&& on) {
    swiglu_forward(on(c.gate_up), on(c.y), stream);
    if (!in_place) return swiglu_backward(on(c.dy), on(c.gate_up), {}, on(c.dgate_up), stream);
    swiglu_backward(on(c.dy), on(c.gate_up), on(c.dy), on(c.gate_up), stream);
  };
  OnBoth<Swiglu>(gpu, start, body, shift).each([&](const Swiglu& c) {
    check_close(c.y.values(), start.forward(), {dtype, 6, 36});
    if (in_place) check_close(c.dy.values(), start.forward(), {dtype, 6, 36});
    check_close((in_place ? c.gate_up : c.dgate_up).values(), start.backward(), {dtype, 6, 36});
  });
}
