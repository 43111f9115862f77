#include "kernels/norm.h"

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

namespace {

constexpr float kEpsilon = 1e-5f;

struct NormCase {
  NormCase(DType type, DType sum_type, std::int64_t row_count, std::int64_t columns)
      : dtype(type),
        rows(row_count),
        width(columns),
        x(type, {rows, width}, random.values(rows * width, -1, 3)),
        weight(type, {width}, random.values(width)),
        bias(type, {width}, random.values(width)),
        dy(type, {rows, width}, random.values(rows * width)),
        residual(type, {rows, width}),
        y(type, {rows, width}),
        dx(type, {rows, width}),
        mean(DType::f32, {rows}),
        rstd(DType::f32, {rows}),
        dweight(sum_type, {width}),
        dbias(sum_type, {width}) {}

  /// Fills what the backward pass adds to and returns it.
  oracle::NormGradient start(bool add) {
    if (!add) return {oracle::zeros(rows * width), oracle::zeros(width), oracle::zeros(width)};
    residual.assign(random.values(rows * width));
    dweight.assign(random.values(width));
    dbias.assign(random.values(width));
    return {residual.values(), dweight.values(), dbias.values()};
  }

  /// rstd is at most a few times 1 for these values, unless few of them happen to be alike.
  Tolerance tolerance(DType type) const { return {type, 40, width < 4 ? 1e3 : 8.0}; }

  Random random;
  DType dtype;
  std::int64_t rows, width;
  TestTensor x, weight, bias, dy, residual, y, dx, mean, rstd, dweight, dbias;
};

}  // namespace

TEST_CASE("layer norm forward and backward agree with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t rows = GENERATE(0, 1, 37), width = GENERATE(3, 37, 64, 257);
  NormCase c(dtype, sum_dtype, rows, width);
  const oracle::NormGradient before = c.start(add);
  const oracle::Norm want =
      oracle::layer_norm(c.x.values(), c.weight.values(), c.bias.values(), rows, width, kEpsilon);
  const oracle::NormGradient gradient = oracle::norm_gradient(
      c.dy.values(), c.x.values(), c.weight.values(), want, rows, width, true);
  run([&](Stream& stream) {
    layer_norm_forward(c.x, c.weight, c.bias, c.y, c.mean, c.rstd, kEpsilon, stream);
    layer_norm_backward(c.dy, c.x, c.weight, c.mean, c.rstd, add ? Tensor(c.residual) : Tensor(),
                        c.dx, c.dweight, c.dbias, Accumulate{add}, stream);
  });
  check_close(c.y.values(), want.y, c.tolerance(dtype));
  check_close(c.mean.values(), want.mean, {DType::f32, 1});
  check_close(c.rstd.values(), want.rstd, c.tolerance(DType::f32));
  check_close(c.dx.values(), sum(before.dx, gradient.dx), c.tolerance(dtype));
  check_close(c.dweight.values(), sum(before.dweight, gradient.dweight), c.tolerance(sum_dtype));
  check_close(c.dbias.values(), sum(before.dbias, gradient.dbias), c.tolerance(sum_dtype));
}

TEST_CASE("RMS norm forward and backward agree with the oracle") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t rows = GENERATE(0, 1, 37), width = GENERATE(1, 37, 64, 257);
  NormCase c(dtype, sum_dtype, rows, width);
  const oracle::NormGradient before = c.start(add);
  const oracle::Norm want =
      oracle::rms_norm(c.x.values(), c.weight.values(), rows, width, kEpsilon);
  const oracle::NormGradient gradient = oracle::norm_gradient(
      c.dy.values(), c.x.values(), c.weight.values(), want, rows, width, false);
  run([&](Stream& stream) {
    rms_norm_forward(c.x, c.weight, c.y, c.rstd, kEpsilon, stream);
    rms_norm_backward(c.dy, c.x, c.weight, c.rstd, add ? Tensor(c.residual) : Tensor(), c.dx,
                      c.dweight, Accumulate{add}, stream);
  });
  check_close(c.y.values(), want.y, c.tolerance(dtype));
  check_close(c.rstd.values(), want.rstd, c.tolerance(DType::f32));
  check_close(c.dx.values(), sum(before.dx, gradient.dx), c.tolerance(dtype));
  check_close(c.dweight.values(), sum(before.dweight, gradient.dweight), c.tolerance(sum_dtype));
}

TEST_CASE("norms of an outlying mean keep their precision") {
  NormCase c(DType::f32, DType::f32, 4, 512);
  Values shifted = c.random.values(2048);
  for (double& v : shifted) v += 1000;
  c.x.assign(shifted);
  const oracle::Norm want =
      oracle::layer_norm(c.x.values(), c.weight.values(), c.bias.values(), 4, 512, kEpsilon);
  run([&](Stream& stream) {
    layer_norm_forward(c.x, c.weight, c.bias, c.y, c.mean, c.rstd, kEpsilon, stream);
  });
  check_close(c.y.values(), want.y, {DType::f32, 2, 1000});  // the mean is rounded once
}

TEST_CASE("the norm oracles' gradients are those of their forward passes") {
  Random random;
  const std::int64_t rows = 2, width = 5;
  const Values x = random.values(10), w = random.values(5), b = random.values(5);
  const Values dy = random.values(10);
  const auto layer = oracle::norm_gradient(
      dy, x, w, oracle::layer_norm(x, w, b, rows, width, kEpsilon), rows, width, true);
  check_gradient(
      [&](const Values& v) {
        return dot(dy, oracle::layer_norm(v, w, b, rows, width, kEpsilon).y);
      },
      x, layer.dx);
  check_gradient(
      [&](const Values& v) {
        return dot(dy, oracle::layer_norm(x, v, b, rows, width, kEpsilon).y);
      },
      w, layer.dweight);
  check_gradient(
      [&](const Values& v) {
        return dot(dy, oracle::layer_norm(x, w, v, rows, width, kEpsilon).y);
      },
      b, layer.dbias);
  const auto rms = oracle::norm_gradient(dy, x, w, oracle::rms_norm(x, w, rows, width, kEpsilon),
                                         rows, width, false);
  check_gradient(
      [&](const Values& v) { return dot(dy, oracle::rms_norm(v, w, rows, width, kEpsilon).y); }, x,
      rms.dx);
  check_gradient(
      [&](const Values& v) { return dot(dy, oracle::rms_norm(x, v, rows, width, kEpsilon).y); }, w,
      rms.dweight);
}

TEST_CASE("norms work in place, forward and backward") {
  NormCase apart(DType::f32, DType::f32, 9, 70), in_place(DType::f32, DType::f32, 9, 70);
  TestTensor x = apart.x;
  const bool centred = GENERATE(true, false);
  const bool onto_residual = GENERATE(true, false);
  apart.residual = in_place.residual = apart.random.tensor(DType::f32, {9, 70});
  run([&](Stream& stream) {
    const auto no = Accumulate::no;
    for (NormCase* c : {&apart, &in_place}) {
      TestTensor& y = c == &apart ? c->y : c->x;
      TestTensor& place = onto_residual ? c->residual : c->dy;
      TestTensor& dx = c == &apart ? c->dx : place;
      const Tensor residual = c->residual;
      if (centred) {
        layer_norm_forward(c->x, c->weight, c->bias, y, c->mean, c->rstd, kEpsilon, stream);
        layer_norm_backward(c->dy, x, c->weight, c->mean, c->rstd, residual, dx, c->dweight,
                            c->dbias, no, stream);
      } else {
        rms_norm_forward(c->x, c->weight, y, c->rstd, kEpsilon, stream);
        rms_norm_backward(c->dy, x, c->weight, c->rstd, residual, dx, c->dweight, no, stream);
      }
    }
  });
  CHECK(in_place.x.bytes() == apart.y.bytes());
  CHECK((onto_residual ? in_place.residual : in_place.dy).bytes() == apart.dx.bytes());
  CHECK(in_place.dweight.bytes() == apart.dweight.bytes());
}

TEST_CASE("norms give the same bits for any number of threads") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  NormCase c(dtype, dtype, 101, 333);
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{c.y, c.dx, c.dweight, c.dbias, c.mean, c.rstd};
    const auto no = Accumulate::no;
    layer_norm_forward(c.x, c.weight, c.bias, out[0], out[4], out[5], kEpsilon, stream);
    layer_norm_backward(c.dy, c.x, c.weight, out[4], out[5], {}, out[1], out[2], out[3], no,
                        stream);
    return out;
  });
  check_threads_change_nothing([&](Stream& stream) {
    std::vector<TestTensor> out{c.y, c.dx, c.dweight, c.rstd};
    const auto no = Accumulate::no;
    rms_norm_forward(c.x, c.weight, out[0], out[3], kEpsilon, stream);
    rms_norm_backward(c.dy, c.x, c.weight, out[3], {}, out[1], out[2], no, stream);
    return out;
  });
}

TEST_CASE("norms refuse operands that do not fit") {
  NormCase c(DType::f32, DType::f32, 4, 6);
  TestTensor narrow(DType::f32, {5}), half(DType::bf16, {6}), few(DType::f32, {3});
  run([&](Stream& stream) {
    const auto no = Accumulate::no;
    CHECK_THROWS_MATCHES(
        layer_norm_forward(c.x, narrow, c.bias, c.y, c.mean, c.rstd, kEpsilon, stream),
        ArgumentError, MessageMatches(ContainsSubstring("weight is f32 [5], expected f32 [6]")));
    CHECK_THROWS_MATCHES(
        layer_norm_forward(c.x, c.weight, c.bias, c.y, few, c.rstd, kEpsilon, stream),
        ArgumentError, MessageMatches(ContainsSubstring("expected f32 of 4 elements")));
    CHECK_THROWS_AS(layer_norm_backward(c.dy, c.x, c.weight, c.mean, c.rstd, {}, c.dx, c.dweight,
                                        half, no, stream),
                    ArgumentError);
    CHECK_THROWS_AS(rms_norm_forward(c.x, half, c.y, c.rstd, kEpsilon, stream), ArgumentError);
    CHECK_THROWS_AS(rms_norm_backward(c.dy, c.x, c.weight, few, {}, c.dx, c.dweight, no, stream),
                    ArgumentError);
    CHECK_THROWS_MATCHES(
        rms_norm_backward(c.dy, c.x, c.weight, c.rstd, narrow, c.dx, c.dweight, no, stream),
        ArgumentError, MessageMatches(ContainsSubstring("residual is f32 [5]")));
  });
}
