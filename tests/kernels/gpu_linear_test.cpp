#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "kernels/linear.h"
#include "kernels/matmul_plans.h"
#include "kernels/matmul_table.h"
#include "tests/kernels/gpu_test_tensor.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using namespace sherd::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using oracle::LinearSize;

namespace {

/// Operands of one layer, and where results go.
struct Layer {
  Layer(DType type, LinearSize s)
      : size(s),
        weight_shape(s.layout == WeightLayout::out_in ? Shape{s.out, s.in} : Shape{s.in, s.out}),
        x(random.tensor(type, {s.rows, s.in})),
        w(random.tensor(type, weight_shape)),
        bias(random.tensor(type, {s.out})),
        dy(random.tensor(type, {s.rows, s.out})),
        y(type, {s.rows, s.out}),
        dx(type, {s.rows, s.in}) {}

  Random random;
  LinearSize size;
  Shape weight_shape;
  TestTensor x, w, bias, dy, y, dx;
};

constexpr LinearSize kSizes[] = {
    {0, 3, 4, {}},      {3, 0, 4, {}},       {3, 4, 0, {}},       {1, 1, 1, {}},
    {5, 7, 3, {}},      {128, 256, 128, {}}, {127, 255, 129, {}}, {129, 257, 127, {}},
    {1100, 37, 65, {}}, {33, 70, 1300, {}},  {256, 512, 384, {}},
};

/// Tensor cores cut off what rounding would round: a product costs up to twice as much.
Tolerance tolerance(DType dtype, std::int64_t products) {
  return {dtype, static_cast<double>(products) + 8, 2};
}

/// The same for a product that is added to what is there: in 16 bits the library may round the
/// product before it adds, which costs a rounding of the product and not of the sum.
Tolerance adding(DType dtype, std::int64_t products, const Values& product) {
  Tolerance tolerance = ::tolerance(dtype, products);
  if (dtype == DType::f32) return tolerance;
  double largest = 0;
  for (const double value : product) largest = std::max(largest, std::abs(value));
  tolerance.roundings += rounding_of(dtype) * largest / 0x1p-24;
  return tolerance;
}

/// f(gpu, size, shift in bytes) for every size in both layouts, at aligned addresses and at the
/// first element after one.
template <class F>
void for_each_size(DType dtype, F f) {
  Gpu gpu;
  for (LinearSize size : kSizes) {
    for (const auto layout : {WeightLayout::out_in, WeightLayout::in_out}) {
      for (const std::int64_t shift : {0, size_of(dtype)}) {
        size.layout = layout;
        INFO(size.rows << " rows, " << size.in << " -> " << size.out << ", shift " << shift
                       << ", layout " << static_cast<int>(layout));
        f(gpu, size, shift);
      }
    }
  }
}

}  // namespace

TEST_CASE("on a GPU linear forward agrees with the oracle and the CPU", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool with_bias = GENERATE(true, false);
  CAPTURE(name_of(dtype), with_bias);
  for_each_size(dtype, [&](Gpu& gpu, LinearSize size, std::int64_t shift) {
    Layer layer(dtype, size);
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      linear_forward(on(layer.x, shift), on(layer.w, shift),
                     with_bias ? on(layer.bias, shift) : Tensor(), on(layer.y, shift), size.layout,
                     stream);
    });
    const Values want = oracle::linear(layer.x.values(), layer.w.values(),
                                       with_bias ? layer.bias.values() : Values(), size);
    // A bias that the library does not take is what the product is added to.
    const Tolerance allowed = adding(dtype, size.in, with_bias ? want : Values());
    check_close(layer.y.values(), want, allowed);
    TestTensor cpu(dtype, {size.rows, size.out});
    run([&](Stream& stream) {
      linear_forward(layer.x, layer.w, with_bias ? Tensor(layer.bias) : Tensor(), cpu, size.layout,
                     stream);
    });
    // Both are that far from the oracle at most.
    Tolerance both = allowed;
    both.roundings += static_cast<double>(size.in);
    both.roundings += dtype == DType::f32 ? 0 : rounding_of(dtype) / 0x1p-24 * 16;
    check_close(layer.y.values(), cpu.values(), both);
  });
}

TEST_CASE("on a GPU linear forward adds a residual, also in its own place", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool with_bias = GENERATE(true, false);
  const bool in_place = GENERATE(true, false);
  CAPTURE(name_of(dtype), with_bias, in_place);
  for_each_size(dtype, [&](Gpu& gpu, LinearSize size, std::int64_t shift) {
    Layer layer(dtype, size);
    const Values bias = with_bias ? layer.bias.values() : Values();
    const Values product = oracle::linear(layer.x.values(), layer.w.values(), bias, size);
    TestTensor residual = layer.random.tensor(dtype, {size.rows, size.out});
    const Values want = sum(product, residual.values());
    TestTensor& y = in_place ? residual : layer.y;
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      const Tensor bias_there = with_bias ? on(layer.bias, shift) : Tensor();
      linear_forward(on(layer.x, shift), on(layer.w, shift), bias_there, on(residual, shift),
                     on(y, shift), size.layout, stream);
    });
    Tolerance allowed = adding(dtype, size.in, product);
    // A bias that the library does not take is added to the residual first: at most 2 is rounded.
    if (with_bias && dtype != DType::f32) allowed.roundings += 2 * rounding_of(dtype) / 0x1p-24;
    check_close(y.values(), want, allowed);
  });
}

TEST_CASE("on a GPU linear backward for the input agrees with the oracle and accumulates",
          "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const bool add = GENERATE(false, true);
  for_each_size(dtype, [&](Gpu& gpu, LinearSize size, std::int64_t shift) {
    Layer layer(dtype, size);
    Values want = oracle::linear_dx(layer.dy.values(), layer.w.values(), size);
    Tolerance allowed = tolerance(dtype, size.out);
    if (add) {
      allowed = adding(dtype, size.out, want);
      layer.dx.assign(layer.random.values(size.rows * size.in));
      want = sum(want, layer.dx.values());
    }
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      linear_backward_input(on(layer.dy, shift), on(layer.w, shift), on(layer.dx, shift),
                            size.layout, Accumulate{add}, stream);
    });
    check_close(layer.dx.values(), want, allowed);
  });
}

TEST_CASE("on a GPU linear backward for the weight agrees with the oracle, also in f32", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const DType sum_dtype = GENERATE_COPY(dtype, DType::f32);
  const bool add = GENERATE(false, true);
  CAPTURE(name_of(dtype), name_of(sum_dtype), add);
  for_each_size(dtype, [&](Gpu& gpu, LinearSize size, std::int64_t shift) {
    Layer layer(dtype, size);
    TestTensor dw(sum_dtype, layer.weight_shape);
    Values want = oracle::linear_dw(layer.x.values(), layer.dy.values(), size);
    Tolerance allowed = tolerance(sum_dtype, size.rows);
    if (add) {
      allowed = adding(sum_dtype, size.rows, want);
      dw.assign(layer.random.values(size.in * size.out));
      want = sum(want, dw.values());
    }
    gpu.run([&](Stream& stream, Gpu::Twins& on) {
      linear_backward_weight(on(layer.x, shift), on(layer.dy, shift), on(dw), size.layout,
                             Accumulate{add}, stream);
    });
    check_close(dw.values(), want, allowed);
  });
}

TEST_CASE("on a GPU f32 products are not rounded to TF32", "[gpu]") {
  Gpu gpu;
  const double exact = 1 + 0x1p-12;  // TF32 keeps 10 bits; sums of 64 stay exact in f32
  TestTensor x(DType::f32, {64, 64}, Values(4096, exact)), w(DType::f32, {64, 64}, Values(4096, 1));
  TestTensor y(DType::f32, {64, 64});
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    linear_forward(on(x), on(w), {}, on(y), WeightLayout::out_in, stream);
  });
  check_close(y.values(), Values(4096, 64 * exact), {DType::f32, 1});
}

TEST_CASE("on a GPU a NaN in an operand reaches the product", "[gpu]") {
  Gpu gpu;
  TestTensor x(DType::f32, {1, 2}, {std::nan(""), 1}), w(DType::f32, {1, 2}, {0, 1});
  TestTensor y(DType::f32, {1, 1}, {0});
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    linear_forward(on(x), on(w), {}, on(y), WeightLayout::out_in, stream);
  });
  CHECK(std::isnan(y.values()[0]));
}

namespace {

struct Results {
  std::vector<std::byte> y, dx, dw;
  bool operator==(const Results&) const = default;
};

/// All products of one layer, once.
Results compute(Gpu& gpu, Layer& layer) {
  TestTensor dw(DType::f32, layer.weight_shape);
  gpu.run([&](Stream& stream, Gpu::Twins& on) {
    const auto layout = layer.size.layout;
    linear_forward(on(layer.x), on(layer.w), on(layer.bias), on(layer.y), layout, stream);
    linear_backward_input(on(layer.dy), on(layer.w), on(layer.dx), layout, Accumulate::no, stream);
    linear_backward_weight(on(layer.x), on(layer.dy), on(dw), layout, Accumulate::no, stream);
  });
  return {layer.y.bytes(), layer.dx.bytes(), dw.bytes()};
}

}  // namespace

TEST_CASE("on a GPU the bits of products are those of every other run", "[gpu]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  // Few outputs and long sums invite the library to cut sums in pieces.
  const LinearSize size = GENERATE(LinearSize{16384, 64, 128, {}}, LinearSize{128, 4096, 64, {}});
  Layer layer(dtype, size);
  Gpu one, other;
  const Results first = compute(one, layer);
  for (int i = 0; i < 5; ++i) CHECK(compute(one, layer) == first);
  CHECK(compute(other, layer) == first);
}

TEST_CASE("on a GPU tuned products stay right, and another stream takes over their plans",
          "[gpu]") {
  Layer layer(DType::bf16, {512, 1024, 768, WeightLayout::out_in});
  Gpu gpu, other;
  compute(gpu, layer);
  const Buffer lent(gpu.memory(), std::int64_t{64} << 20);
  const MatmulTuning tuning = tune_matmul_plans(lent.tensor(DType::u8, {64 << 20}), gpu.stream());
  CHECK(tuning.products == 3);
  CHECK(tuning.too_large == 0);
  CHECK(tuning.after_ms <= tuning.before_ms);
  const Results tuned = compute(gpu, layer);
  check_close(layer.y.values(),
              oracle::linear(layer.x.values(), layer.w.values(), layer.bias.values(), layer.size),
              tolerance(DType::bf16, 1024));

  const std::string text = export_matmul_plans(gpu.stream());
  compute(other, layer);  // with plans of its own, which the import replaces
  import_matmul_plans(text, other.stream());
  CHECK(export_matmul_plans(other.stream()) == text);
  CHECK(compute(other, layer) == tuned);
}

TEST_CASE("on a GPU products too large for the lent memory are left as they are", "[gpu]") {
  Layer layer(DType::bf16, {512, 1024, 768, WeightLayout::out_in});
  Gpu gpu;
  compute(gpu, layer);
  const std::string before = export_matmul_plans(gpu.stream());
  const Buffer lent(gpu.memory(), 1 << 20);
  const MatmulTuning tuning = tune_matmul_plans(lent.tensor(DType::u8, {1 << 20}), gpu.stream());
  CHECK(tuning.products == 0);
  CHECK(tuning.too_large == 3);
  CHECK(export_matmul_plans(gpu.stream()) == before);
}

TEST_CASE("on a GPU plans are kept in a file beside those of other devices", "[gpu]") {
  Layer layer(DType::f32, {33, 70, 50, WeightLayout::in_out});
  Gpu gpu, other;
  compute(gpu, layer);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path("products.txt");
  const std::string foreign = "[another device]\n";
  std::ofstream(path) << foreign;
  CHECK(load_matmul_plans(path, other.stream()) == 0);
  save_matmul_plans(path, gpu.stream());
  CHECK(load_matmul_plans(path, other.stream()) == 3);
  CHECK(export_matmul_plans(other.stream()) == export_matmul_plans(gpu.stream()));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(matmul_tables(text).contains("another device"));
  CHECK_THROWS_MATCHES(import_matmul_plans(foreign, other.stream()), DataError,
                       MessageMatches(ContainsSubstring("another device")));
}

TEST_CASE("on a GPU plans with an algorithm that is none are refused as a whole", "[gpu]") {
  Layer layer(DType::f32, {33, 70, 50, WeightLayout::in_out});
  Gpu gpu, other;
  compute(gpu, layer);
  MatmulTables tables = matmul_tables(export_matmul_plans(gpu.stream()));
  REQUIRE(tables.size() == 1);
  MatmulTable& table = tables.begin()->second;
  REQUIRE(table.size() == 3);
  table.rbegin()->second.fill(~std::uint64_t{0});
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path("products.txt");
  std::ofstream(path) << to_text(tables);
  const std::string none = export_matmul_plans(other.stream());
  CHECK_THROWS_AS(load_matmul_plans(path, other.stream()), Error);
  CHECK(export_matmul_plans(other.stream()) == none);
  compute(other, layer);  // goes on as if there had been no file
}

TEST_CASE("on a GPU a product says so when the stream's scratch is too small", "[gpu]") {
  Layer layer(DType::f32, {5, 7, 3, {}});
  Gpu gpu(1 << 10);
  CHECK_THROWS_MATCHES(compute(gpu, layer), ArgumentError,
                       MessageMatches(ContainsSubstring("bytes of scratch")));
}
