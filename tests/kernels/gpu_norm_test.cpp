#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/norm.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/head_norm_case.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

namespace {

constexpr float kEpsilon = 1e-5f;

struct Size {
  std::int64_t rows, width;
};
// A thread, part of a warp, a warp, several, a block a row; more rows than blocks; sums that shared
// memory doesn't hold.
constexpr Size kSizes[] = {{0, 37},   {1, 1},     {37, 37},   {37, 64},   {101, 257}, {3, 768},
                           {5, 4096}, {600, 520}, {9000, 16}, {700, 333}, {3, 25000}, {2, 30001}};

struct Norm {
  Norm(DType type, DType sum_type, Size size, bool add)
      : dtype(type),
        sum_dtype(sum_type),
        rows(size.rows),
        width(size.width),
        x(random.tensor(type, {rows, width}, -1, 3)),
        weight(random.tensor(type, {width})),
        bias(random.tensor(type, {width})),
        dy(random.tensor(type, {rows, width})),
        residual(type, {rows, width}),
        y(type, {rows, width}),
        dx(type, {rows, width}),
        mean(DType::f32, {rows}),
        rstd(DType::f32, {rows}),
        dweight(sum_type, {width}),
        dbias(sum_type, {width}),
        accumulate(add),
        before{oracle::zeros(rows * width), oracle::zeros(width), oracle::zeros(width)} {
    if (!add) return;
    residual.assign(random.values(rows * width));
    dweight.assign(random.values(width));
    dbias.assign(random.values(width));
    before = {residual.values(), dweight.values(), dbias.values()};
  }

  Tolerance tolerance(DType type) const { return {type, 40, width < 3 ? 1e3 : 8.0}; }
  /// Sums over rows round as they grow.
  Tolerance sum_tolerance() const {
    return {sum_dtype, 40 + static_cast<double>(rows) / 8, width < 3 ? 1e3 : 8.0};
  }
  void check_backward(const oracle::NormGradient& gradient) const {
    check_close(dx.values(), sum(before.dx, gradient.dx), tolerance(dtype));
    check_close(dweight.values(), sum(before.dweight, gradient.dweight), sum_tolerance());
  }

  Random random;
  DType dtype, sum_dtype;
  std::int64_t rows, width;
  TestTensor x, weight, bias, dy, residual, y, dx, mean, rstd, dweight, dbias;
  bool accumulate;
  oracle::NormGradient before;
};

}  // namespace

TEST_CASE("on a GPU layer norm agrees with the oracle as on the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu;
  for (const Size size : kSizes) {
    if (size.width == 1) continue;  // nothing is left of such a row
    INFO(size.rows << " rows of " << size.width);
    const Norm start(dtype, sum_dtype, size, add);
    const oracle::Norm want =
        oracle::layer_norm(start.x.values(), start.weight.values(), start.bias.values(), size.rows,
                           size.width, kEpsilon);
    const oracle::NormGradient gradient =
        oracle::norm_gradient(start.dy.values(), start.x.values(), start.weight.values(), want,
                              size.rows, size.width, true);
    gpu.lend_scratch(layer_norm_backward_scratch_bytes(size.rows, size.width));
    const auto body = [](Norm& c, Stream& stream, auto&& on) {
      layer_norm_forward(on(c.x), on(c.weight), on(c.bias), on(c.y), on(c.mean), on(c.rstd),
                         kEpsilon, stream);
      layer_norm_backward(on(c.dy), on(c.x), on(c.weight), on(c.mean), on(c.rstd),
                          c.accumulate ? on(c.residual) : Tensor(), on(c.dx), on(c.dweight),
                          on(c.dbias), Accumulate{c.accumulate}, stream);
    };
    OnBoth<Norm>(gpu, start, body, shift).each([&](const Norm& c) {
      check_close(c.y.values(), want.y, c.tolerance(dtype));
      check_close(c.mean.values(), want.mean, {DType::f32, 4});
      check_close(c.rstd.values(), want.rstd, c.tolerance(DType::f32));
      c.check_backward(gradient);
      check_close(c.dbias.values(), sum(c.before.dbias, gradient.dbias), c.sum_tolerance());
    });
  }
}

TEST_CASE("on a GPU RMS norm agrees with the oracle as on the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  Gpu gpu;
  for (const Size size : kSizes) {
    INFO(size.rows << " rows of " << size.width);
    const Norm start(dtype, sum_dtype, size, add);
    const oracle::Norm want =
        oracle::rms_norm(start.x.values(), start.weight.values(), size.rows, size.width, kEpsilon);
    const oracle::NormGradient gradient =
        oracle::norm_gradient(start.dy.values(), start.x.values(), start.weight.values(), want,
                              size.rows, size.width, false);
    gpu.lend_scratch(rms_norm_backward_scratch_bytes(size.rows, size.width));
    const auto body = [](Norm& c, Stream& stream, auto&& on) {
      rms_norm_forward(on(c.x), on(c.weight), on(c.y), on(c.rstd), kEpsilon, stream);
      rms_norm_backward(on(c.dy), on(c.x), on(c.weight), on(c.rstd),
                        c.accumulate ? on(c.residual) : Tensor(), on(c.dx), on(c.dweight),
                        Accumulate{c.accumulate}, stream);
    };
    OnBoth<Norm>(gpu, start, body, shift).each([&](const Norm& c) {
      check_close(c.y.values(), want.y, c.tolerance(dtype));
      check_close(c.rstd.values(), want.rstd, c.tolerance(DType::f32));
      c.check_backward(gradient);
    });
  }
}

TEST_CASE("on a GPU norms of an outlying mean keep their precision", "[gpu]") {
  Norm c(DType::f32, DType::f32, {4, 512}, false);
  Values shifted = c.random.values(c.rows * c.width);
  for (double& v : shifted) v += 1000;
  c.x.assign(shifted);
  const oracle::Norm want =
      oracle::layer_norm(c.x.values(), c.weight.values(), c.bias.values(), 4, 512, kEpsilon);
  Gpu gpu;
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    layer_norm_forward(on(c.x), on(c.weight), on(c.bias), on(c.y), on(c.mean), on(c.rstd), kEpsilon,
                       stream);
  });
  check_close(c.y.values(), want.y, {DType::f32, 8, 1000});  // the mean is summed in float
}

TEST_CASE("on a GPU norms have the same bits in place, forward and backward", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const bool centred = GENERATE(true, false);
  const bool onto_residual = GENERATE(true, false);
  const Size size = GENERATE(Size{9, 70}, Size{5, 2048}, Size{3, 40000});
  Norm apart(dtype, DType::f32, size, false);
  apart.residual.assign(apart.random.values(size.rows * size.width));
  Norm in_place = apart;
  Gpu gpu;
  for (Norm* c : {&apart, &in_place}) {
    TestTensor x = c->x;
    TestTensor& y = c == &apart ? c->y : c->x;
    TestTensor& place = onto_residual ? c->residual : c->dy;
    TestTensor& dx = c == &apart ? c->dx : place;
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      const auto no = Accumulate::no;
      if (centred) {
        layer_norm_forward(on(c->x), on(c->weight), on(c->bias), on(y), on(c->mean), on(c->rstd),
                           kEpsilon, stream);
        layer_norm_backward(on(c->dy), on(x), on(c->weight), on(c->mean), on(c->rstd),
                            on(c->residual), on(dx), on(c->dweight), on(c->dbias), no, stream);
      } else {
        rms_norm_forward(on(c->x), on(c->weight), on(y), on(c->rstd), kEpsilon, stream);
        rms_norm_backward(on(c->dy), on(x), on(c->weight), on(c->rstd), on(c->residual), on(dx),
                          on(c->dweight), no, stream);
      }
    });
  }
  CHECK(in_place.x.bytes() == apart.y.bytes());
  CHECK((onto_residual ? in_place.residual : in_place.dy).bytes() == apart.dx.bytes());
  CHECK(in_place.dweight.bytes() == apart.dweight.bytes());
}

TEST_CASE("on a GPU head norm agrees with the oracle and leaves other heads alone", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  const std::int64_t shift = GENERATE(0, 1);
  // More positions than blocks, more blocks than positions, one sample and many.
  const auto p =
      GENERATE(Heads{1, 0, 5, 8, 1, 3}, Heads{1, 1, 1, 2, 0, 1}, Heads{2, 7, 7, 34, 4, 2},
               Heads{2, 7, 7, 16, 2, 0}, Heads{3, 2, 4, 128, 0, 4}, Heads{1, 900, 6, 128, 1, 3},
               Heads{200, 3, 4, 64, 1, 2}, Heads{2, 10, 3, 1024, 1, 2}, Heads{1, 3, 2, 8192, 0, 2});
  const HeadNormCase start(dtype, sum_dtype, p, add);
  const HeadNormWant want(start);
  Gpu gpu;
  gpu.lend_scratch(head_norm_backward_scratch_bytes(p.rows(), p.width));
  const auto body = [](HeadNormCase& c, Stream& stream, auto&& on) { c.enqueue(stream, on); };
  OnBoth<HeadNormCase>(gpu, start, body, shift).each([&](const HeadNormCase& c) { want.check(c); });
}

TEST_CASE("on a GPU norms need the scratch that they ask for", "[gpu]") {
  Norm c(DType::f32, DType::f32, {40, 64}, false);
  Gpu gpu;
  const auto backward = [&](Stream& stream, Gpu::Twins& on) {
    rms_norm_backward(on(c.dy), on(c.x), on(c.weight), on(c.rstd), {}, on(c.dx), on(c.dweight),
                      Accumulate::no, stream);
  };
  gpu.lend_scratch(rms_norm_backward_scratch_bytes(40, 64) - 1);
  CHECK_THROWS_AS(gpu.run(backward), ArgumentError);
  gpu.lend_scratch(rms_norm_backward_scratch_bytes(40, 64));
  CHECK_NOTHROW(gpu.run(backward));
}
