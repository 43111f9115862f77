#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/fixed_point.h"
#include "kernels/head_norm.h"
#include "kernels/linear.h"
#include "kernels/non_finite.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/test_tensor.h"

using namespace sherd;
using namespace sherd::test;

namespace {

constexpr std::int64_t kBatch = 2, kTokens = 33, kRows = kBatch * kTokens, kWidth = 64, kHeads = 4;
constexpr std::int64_t kNumel = kWidth * kWidth;

/// What a training step does besides products and attention, one operation after the other.
struct Step {
  explicit Step(DType dtype)
      : tokens({kRows}, random.integers(kRows, 50)),
        labels({kRows}, random.integers(kRows, kWidth)),
        table(random.tensor(dtype, {50, kWidth})),
        positions(random.tensor(dtype, {kTokens, kWidth})),
        weight(random.tensor(dtype, {kWidth})),
        bias(random.tensor(dtype, {kWidth})),
        head_weight(random.tensor(dtype, {kWidth / kHeads})),
        x(dtype, {kBatch, kTokens, kWidth}),
        y(dtype, {kBatch, kTokens, kWidth}),
        dx(dtype, {kBatch, kTokens, kWidth}),
        half(dtype, {kBatch, kTokens, kWidth / 2}),
        saved(dtype, {kRows, kHeads, kWidth / kHeads}),
        mean(DType::f32, {kRows}),
        rstd(DType::f32, {kRows * kHeads}),
        losses(DType::f32, {kRows}),
        scale(DType::f32, {1}, {0.25}),
        dtable(DType::f32, {50, kWidth}),
        dpositions(DType::f32, {kTokens, kWidth}),
        dweight(DType::f32, {kWidth}),
        dbias(DType::f32, {kWidth}),
        masters(random.tensor(DType::f32, {kNumel})),
        gradient(random.tensor(DType::f32, {kNumel})),
        first(DType::f32, {kNumel}, Values(kNumel, 0.0)),
        second(DType::f32, {kNumel}, Values(kNumel, 0.0)) {}

  void enqueue(Stream& stream, Gpu::Twins& on) {
    const auto no = Accumulate::no, yes = Accumulate::yes;
    const Shape packed{kBatch, kTokens, kHeads, kWidth / kHeads};
    const Tensor heads = on(y).view(packed);
    embedding_forward(on(tokens), on(table), on(x).view({kRows, kWidth}), no, stream);
    position_forward(on(positions), on(x), stream);
    layer_norm_forward(on(x), on(weight), on(bias), on(y), on(mean), on(rstd).flat({0, kRows}),
                       1e-5f, stream);
    layer_norm_backward(on(y), on(x), on(weight), on(mean), on(rstd).flat({0, kRows}), {}, on(dx),
                        on(dweight), on(dbias), no, stream);
    rope(heads, 0, kHeads, {}, RopeDirection::forward, stream);
    head_norm_forward(heads, 0, kHeads, on(head_weight), on(saved), on(rstd), 1e-5f, {}, stream);
    swiglu_forward(on(y), on(half), stream);
    activation_forward(on(half), on(half), Activation::gelu_tanh, stream);
    swiglu_backward(on(half), on(y), on(half), on(y), stream);
    dropout(on(y), on(y), 0.1f, {{1, 2}, on.pointer(past)}, 3, stream);
    add(on(x), on(y), on(x), stream);
    rms_norm_forward(on(x), on(weight), on(y), on(rstd).flat({0, kRows}), 1e-5f, stream);
    cross_entropy_forward_backward(on(y).view({kRows, kWidth}), on(labels), on(losses), on(scale),
                                   stream);
    rms_norm_backward(on(y), on(x), on(weight), on(rstd).flat({0, kRows}), on(dx), on(y),
                      on(dweight), yes, stream);
    bias_backward(on(y), on(dbias), yes, stream);
    position_backward(on(y), on(dpositions), no, stream);
    embedding_backward(on(tokens), on(y).view({kRows, kWidth}), on(dtable), no, stream);
    update(stream, on);
  }

  void update(Stream& stream, Gpu::Twins& on) {
    const Tensor split = on(limbs).view({kLimbs, kNumel});
    to_fixed_point(on(gradient), split, false, on(count), stream);
    from_fixed_point(split, on(gradient), stream);
    sum_of_squares_exact(on(gradient), on(squares), on(count), stream);
    sum_of_squares_fast(on(gradient), on(squares), on(count), stream);
    sum_into(on(losses), on(squares), on(count), stream);
    find_non_finite(on(gradient), 0, on(found), stream);
    adamw_update({on(masters), {}}, on(gradient), on(first), on(second), on.pointer(segments), 1,
                 {}, on.pointer(scalars), stream);
  }

  /// Everything that the step leaves behind.
  std::vector<std::vector<std::byte>> results() const {
    return {x.bytes(),       dx.bytes(),         y.bytes(),       losses.bytes(),
            dtable.bytes(),  dpositions.bytes(), dweight.bytes(), dbias.bytes(),
            masters.bytes(), first.bytes(),      second.bytes()};
  }

  Random random;
  TestTensor tokens, labels, table, positions, weight, bias, head_weight, x, y, dx, half, saved,
      mean, rstd, losses, scale, dtable, dpositions, dweight, dbias, masters, gradient, first,
      second;
  std::vector<std::int64_t> limbs = std::vector<std::int64_t>(kLimbs * kNumel);
  std::vector<std::int64_t> squares = std::vector<std::int64_t>(kScalarLimbs);
  std::vector<std::uint64_t> past{40};
  std::vector<std::int64_t> count{0}, found{0, kNumel};
  std::vector<DecaySegment> segments{{kNumel, 0.1}};
  std::vector<UpdateScalars> scalars = std::vector<UpdateScalars>(1);
};

}  // namespace

TEST_CASE("on a GPU a captured step has the bits of a step that is not", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Step plain(dtype);
  plain.scalars[0].lr = 0.01;
  Step captured = plain;
  Gpu gpu;
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    plain.enqueue(stream, on);
    plain.enqueue(stream, on);
  });
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    captured.enqueue(stream, on);  // puts all twins on the device
    stream.synchronize();
    const auto recording = record(stream, [&] { captured.enqueue(stream, on); });
    recording->replay();
    stream.synchronize();
  });
  CHECK(captured.results() == plain.results());
  CHECK(captured.squares == plain.squares);
  CHECK(captured.count == plain.count);
  CHECK(captured.found == plain.found);
  CHECK(plain.count == std::vector<std::int64_t>{0});
}
