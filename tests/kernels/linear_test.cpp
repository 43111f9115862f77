#include "kernels/linear.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::LinearSize;

namespace {

/// Operands of one layer: exact values of what the tensors hold, and where results go.
struct Layer {
  Layer(DType type, LinearSize s)
      : size(s),
        weight_shape(s.layout == WeightLayout::out_in ? Shape{s.out, s.in} : Shape{s.in, s.out}),
        x(type, {s.rows, s.in}, random.values(s.rows * s.in)),
        w(type, weight_shape, random.values(s.in * s.out)),
        bias(type, {s.out}, random.values(s.out)),
        dy(type, {s.rows, s.out}, random.values(s.rows * s.out)),
        y(type, {s.rows, s.out}) {}

  Random random;
  LinearSize size;
  Shape weight_shape;
  TestTensor x, w, bias, dy, y;
};

/// Sums of `depth` products below 1 grow like its square root, and so do their rounding errors.
Tolerance product_tolerance(DType dtype, std::int64_t depth) {
  return {dtype, 4 * static_cast<double>(depth) + 8};
}

constexpr LinearSize kSizes[] = {
    {0, 3, 4, {}},      {3, 0, 4, {}},       {3, 4, 0, {}},       {1, 1, 1, {}},
    {5, 7, 3, {}},      {128, 256, 128, {}}, {127, 255, 129, {}}, {129, 257, 127, {}},
    {1100, 37, 65, {}}, {33, 70, 1300, {}},
};

LinearSize any_size() {
  LinearSize size = GENERATE(from_range(std::begin(kSizes), std::end(kSizes)));
  size.layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  return size;
}

}  // namespace

TEST_CASE("linear forward agrees with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool with_bias = GENERATE(true, false);
  const LinearSize size = any_size();
  Layer layer(dtype, size);
  run([&](Stream& stream) {
    linear_forward(layer.x, layer.w, with_bias ? Tensor(layer.bias) : Tensor(), layer.y,
                   size.layout, stream);
  });
  const Values want = oracle::linear(layer.x.values(), layer.w.values(),
                                     with_bias ? layer.bias.values() : Values(), size);
  check_close(layer.y.values(), want, product_tolerance(dtype, size.in));
}

TEST_CASE("linear forward adds a residual, also in its own place") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool with_bias = GENERATE(true, false);
  const bool in_place = GENERATE(true, false);
  const LinearSize size = any_size();
  Layer layer(dtype, size);
  const Tensor bias = with_bias ? Tensor(layer.bias) : Tensor();
  TestTensor residual = layer.random.tensor(dtype, {size.rows, size.out});
  const Values want = sum(oracle::linear(layer.x.values(), layer.w.values(),
                                         with_bias ? layer.bias.values() : Values(), size),
                          residual.values());
  TestTensor& y = in_place ? residual : layer.y;
  run([&](Stream& stream) {
    linear_forward(layer.x, layer.w, bias, residual, y, size.layout, stream);
  });
  check_close(y.values(), want, product_tolerance(dtype, size.in));
}

TEST_CASE("linear backward for the input agrees with the oracle and accumulates") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool add = GENERATE(false, true);
  const LinearSize size = any_size();
  Layer layer(dtype, size);
  TestTensor dx(dtype, {size.rows, size.in});
  Values want = oracle::linear_dx(layer.dy.values(), layer.w.values(), size);
  if (add) {
    dx.assign(layer.random.values(size.rows * size.in));
    want = sum(want, dx.values());
  }
  run([&](Stream& stream) {
    linear_backward_input(layer.dy, layer.w, dx, size.layout, Accumulate{add}, stream);
  });
  check_close(dx.values(), want, product_tolerance(dtype, size.out));
}

TEST_CASE("linear backward for the weight agrees with the oracle in its own dtype and in f32") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const LinearSize size = any_size();
  Layer layer(dtype, size);
  TestTensor dw(sum_dtype, layer.weight_shape);
  Values want = oracle::linear_dw(layer.x.values(), layer.dy.values(), size);
  if (add) {
    dw.assign(layer.random.values(size.in * size.out));
    want = sum(want, dw.values());
  }
  run([&](Stream& stream) {
    linear_backward_weight(layer.x, layer.dy, dw, size.layout, Accumulate{add}, stream);
  });
  check_close(dw.values(), want, product_tolerance(sum_dtype, size.rows));
}

TEST_CASE("bias backward sums rows in its own dtype and in f32") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t rows = GENERATE(0, 1, 777);
  const std::int64_t columns = GENERATE(0, 1, 63, 64, 65, 200);
  Random random;
  TestTensor dy(dtype, {rows, columns}, random.values(rows * columns));
  TestTensor dbias(sum_dtype, {columns});
  Values want = oracle::column_sums(dy.values(), rows, columns);
  if (add) {
    dbias.assign(random.values(columns));
    want = sum(want, dbias.values());
  }
  run([&](Stream& stream) { bias_backward(dy, dbias, Accumulate{add}, stream); });
  check_close(dbias.values(), want, {sum_dtype, 1});
}

TEST_CASE("the linear oracle's gradients are those of its forward pass") {
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  const LinearSize size{3, 4, 5, layout};
  Random random;
  const Values x = random.values(12), w = random.values(20), b = random.values(5);
  const Values dy = random.values(15);
  check_gradient([&](const Values& v) { return dot(dy, oracle::linear(v, w, b, size)); }, x,
                 oracle::linear_dx(dy, w, size));
  check_gradient([&](const Values& v) { return dot(dy, oracle::linear(x, v, b, size)); }, w,
                 oracle::linear_dw(x, dy, size));
  check_gradient([&](const Values& v) { return dot(dy, oracle::linear(x, w, v, size)); }, b,
                 oracle::column_sums(dy, 3, 5));
}

TEST_CASE("linear layers take leading dimensions as rows") {
  Random random;
  TestTensor x(DType::f32, {2, 3, 4}, random.values(24));
  TestTensor w(DType::f32, {5, 4}, random.values(20));
  TestTensor y(DType::f32, {2, 3, 5});
  run([&](Stream& stream) { linear_forward(x, w, {}, y, WeightLayout::out_in, stream); });
  check_close(y.values(), oracle::linear(x.values(), w.values(), {}, {6, 4, 5, {}}), {});
}

TEST_CASE("linear layers give the same bits for any number of threads") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const LinearSize size = GENERATE(LinearSize{1500, 70, 300, {}}, LinearSize{200, 600, 1111, {}});
  Layer layer(dtype, size);
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{{dtype, {size.rows, size.out}},
                                {dtype, {size.rows, size.in}},
                                {dtype, {size.out, size.in}},
                                {dtype, {size.out}},
                                {dtype, {size.rows, size.out}}};
    linear_forward(layer.x, layer.w, layer.bias, out[0], size.layout, stream);
    linear_backward_input(layer.dy, layer.w, out[1], size.layout, Accumulate::no, stream);
    linear_backward_weight(layer.x, layer.dy, out[2], size.layout, Accumulate::no, stream);
    bias_backward(layer.dy, out[3], Accumulate::no, stream);
    linear_forward(layer.x, layer.w, layer.bias, layer.dy, out[4], size.layout, stream);
    return out;
  });
}

TEST_CASE("a NaN or infinity in an operand reaches the product") {
  TestTensor x(DType::f32, {1, 2}, {std::nan(""), 1});
  TestTensor w(DType::f32, {1, 2}, {0, 1});
  TestTensor y(DType::f32, {1, 1}, {0});
  run([&](Stream& stream) { linear_forward(x, w, {}, y, WeightLayout::out_in, stream); });
  CHECK(std::isnan(y.values()[0]));
}

TEST_CASE("linear layers refuse operands that do not fit") {
  TestTensor x(DType::f32, {2, 3}), w(DType::f32, {4, 3}), y(DType::f32, {2, 4});
  TestTensor half(DType::bf16, {4, 3}), bias(DType::f32, {3}), short_y(DType::f32, {1, 4});
  run([&](Stream& stream) {
    const auto out_in = WeightLayout::out_in;
    CHECK_THROWS_MATCHES(linear_forward(x, w, {}, y, WeightLayout::in_out, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("w is f32 [4, 3], expected f32 [3, 4]")));
    CHECK_THROWS_MATCHES(linear_forward(x, half, {}, y, out_in, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("w is bf16 [4, 3]")));
    CHECK_THROWS_MATCHES(linear_forward(x, w, bias, y, out_in, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("bias is f32 [3], expected f32 [4]")));
    CHECK_THROWS_MATCHES(linear_forward(x, w, {}, short_y, out_in, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("expected f32 of 2 rows of 4")));
    CHECK_THROWS_MATCHES(linear_forward(x, w, {}, short_y, y, out_in, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("residual is f32 [1, 4]")));
    CHECK_THROWS_MATCHES(linear_forward({}, w, {}, y, out_in, stream), ArgumentError,
                         MessageMatches(ContainsSubstring("x is undefined")));
    CHECK_THROWS_AS(linear_backward_input(y, w, short_y, out_in, Accumulate::no, stream),
                    ArgumentError);
    CHECK_THROWS_AS(linear_backward_weight(x, y, half, out_in, Accumulate::no, stream),
                    ArgumentError);
    CHECK_THROWS_AS(bias_backward(y, bias, Accumulate::no, stream), ArgumentError);
  });
}
