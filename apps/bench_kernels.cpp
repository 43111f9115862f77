#include "apps/bench_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "apps/bench_bed.h"
#include "apps/bench_table.h"
#include "apps/device_choice.h"
#include "apps/quantity.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/fixed_point.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"

namespace sherd {
namespace {

/// What is measured: the sizes of a model's layers.
struct KernelSizes {
  std::int64_t batch, sequence;
  std::int64_t rows;  ///< of what is neither attention nor head
  std::int64_t hidden, inner;
  int heads, kv_heads;
  std::int64_t head_width;
  std::int64_t vocabulary, head_rows;
  std::int64_t updated;  ///< elements of an update
  std::int64_t exact;    ///< elements of an exact sum
  std::int64_t copied;   ///< bytes of the copy that others are compared with
  std::int64_t square;   ///< side of the product that others are compared with
  std::vector<DType> dtypes;

  int qkv_heads() const { return heads + 2 * kv_heads; }
};

KernelSizes sizes_for_cpus() {
  return {.batch = 4,
          .sequence = 512,
          .rows = 2048,
          .hidden = 512,
          .inner = 1376,
          .heads = 8,
          .kv_heads = 4,
          .head_width = 64,
          .vocabulary = 4096,
          .head_rows = 2048,
          .updated = std::int64_t{1} << 23,
          .exact = std::int64_t{1} << 23,
          .copied = std::int64_t{64} << 20,
          .square = 2048,
          .dtypes = {DType::f32}};
}

/// Those of Llama 3 8B.
KernelSizes sizes_for_gpus() {
  return {.batch = 2,
          .sequence = 4096,
          .rows = 16384,
          .hidden = 4096,
          .inner = 14336,
          .heads = 32,
          .kv_heads = 8,
          .head_width = 128,
          .vocabulary = 128256,
          .head_rows = 4096,
          .updated = std::int64_t{1} << 28,
          .exact = std::int64_t{1} << 26,
          .copied = std::int64_t{1} << 30,
          .square = 8192,
          .dtypes = {DType::bf16, DType::f32}};
}

constexpr double kGiga = 1e6;  // of a rate by milliseconds

/// "41.2 TFLOP/s", "140 GFLOP/s"
std::string product_rate(double gflops) {
  constexpr double kTera = 1e3;
  return gflops < kTera ? fmt::format("{:.0f} GFLOP/s", gflops)
                        : fmt::format("{:.1f} TFLOP/s", gflops / kTera);
}
std::string memory_rate(double gb_per_s) { return fmt::format("{:.1f} GB/s", gb_per_s); }

class KernelBench {
 public:
  KernelBench(Device device, int threads, int repetitions)
      : sizes_(device.is_cpu() ? sizes_for_cpus() : sizes_for_gpus()),
        device_(device),
        bed_(device, threads, repetitions),
        table_({"kernel", "type", "ms", "rate", "limit", "share"}) {
    bed_.set_scratch(scratch_bytes());
  }

  void run();
  std::string text() const;

 private:
  Tensor random(const Shape& shape) { return bed_.random(dtype_, shape); }
  Tensor room(const Shape& shape) { return bed_.room(dtype_, shape); }
  Shape hidden_rows() const { return {sizes_.rows, sizes_.hidden}; }
  double bytes_of(const Shape& shape) const {
    return static_cast<double>(shape.numel() * size_of(dtype_));
  }
  AttentionSpec attention_spec() const;
  Shape qkv_shape() const {
    return {sizes_.batch, sizes_.sequence, sizes_.qkv_heads(), sizes_.head_width};
  }
  std::int64_t scratch_bytes() const;

  void row(const char* name, double ms, const std::string& rate, const std::string& limit,
           double share);
  void flops_row(const char* name, double flops, const std::function<Launch()>& make);
  void bytes_row(const char* name, double bytes, const std::function<Launch()>& make);

  void measure_copy();
  void measure_products();
  void products();
  void attention();
  void norms();
  void activations();
  void rotation();
  void tokens();
  void head();
  void update();
  void exact_sum();

  KernelSizes sizes_;
  Device device_;
  BenchBed bed_;
  BenchTable table_;
  DType dtype_ = DType::f32;
  double gflops_ = 1.0;  ///< the ceiling of products of this dtype
  double gb_per_s_ = 1.0;
  std::string limits_;   ///< what they are, for people
  std::string engines_;  ///< of attention, by dtype
};

AttentionSpec KernelBench::attention_spec() const {
  return {.heads = sizes_.heads,
          .kv_heads = sizes_.kv_heads,
          .causal = true,
          .scale = 1.0f / std::sqrt(static_cast<float>(sizes_.head_width))};
}

std::int64_t KernelBench::scratch_bytes() const {
  std::int64_t bytes =
      std::max({linear_scratch_bytes(), rms_norm_backward_scratch_bytes(sizes_.rows, sizes_.hidden),
                embedding_backward_scratch_bytes(sizes_.rows)});
  for (const DType dtype : sizes_.dtypes) {
    bytes = std::max(bytes, attention_scratch_bytes(sizes_.batch, sizes_.sequence,
                                                    sizes_.head_width, dtype, attention_spec()));
  }
  return bytes;
}

void KernelBench::row(const char* name, double ms, const std::string& rate,
                      const std::string& limit, double share) {
  constexpr double kPercent = 100.0;
  table_.add({name, std::string(name_of(dtype_)), fmt::format("{:.3f}", ms), rate, limit,
              fmt::format("{:.0f}%", kPercent * share)});
}

void KernelBench::flops_row(const char* name, double flops, const std::function<Launch()>& make) {
  const double ms = bed_.time_ms(make);
  const double rate = flops / ms / kGiga;
  row(name, ms, product_rate(rate), product_rate(gflops_), rate / gflops_);
}

void KernelBench::bytes_row(const char* name, double bytes, const std::function<Launch()>& make) {
  const double ms = bed_.time_ms(make);
  const double rate = bytes / ms / kGiga;
  row(name, ms, memory_rate(rate), memory_rate(gb_per_s_), rate / gb_per_s_);
}

void KernelBench::measure_copy() {
  const Shape shape{sizes_.copied / size_of(dtype_)};
  const double ms = bed_.time_ms([&]() -> Launch {
    return [from = random(shape), to = room(shape), &s = bed_.stream()] { copy(from, to, s); };
  });
  gb_per_s_ = 2.0 * bytes_of(shape) / ms / kGiga;
  limits_ = fmt::format("a copy of {} (read + written): {}", bytes_text(sizes_.copied),
                        memory_rate(gb_per_s_));
}

void KernelBench::measure_products() {
  const std::int64_t side = sizes_.square;
  if (dtype_ == DType::bf16) {
    constexpr double kGigaInTera = 1e3;
    gflops_ = bed_.sustained_tflops() * kGigaInTera;
  } else {
    const double ms = bed_.time_ms([&]() -> Launch {
      return [a = random({side, side}), b = random({side, side}), c = room({side, side}),
              &s = bed_.stream()] { linear_forward(a, b, {}, c, WeightLayout::out_in, s); };
    });
    gflops_ = 2.0 * std::pow(static_cast<double>(side), 3) / ms / kGiga;
  }
  limits_ += fmt::format("; {0} products of {1} x {1} x {1}: {2}", name_of(dtype_), side,
                         product_rate(gflops_));
}

void KernelBench::products() {
  const auto [M, K, N] = std::array{sizes_.rows, sizes_.hidden, 2 * sizes_.inner};
  const double flops =
      2.0 * static_cast<double>(M) * static_cast<double>(K) * static_cast<double>(N);
  constexpr WeightLayout kLayout = WeightLayout::out_in;
  Stream& s = bed_.stream();
  flops_row("linear forward", flops, [&, M = M, K = K, N = N]() -> Launch {
    return [x = random({M, K}), w = random({N, K}), y = room({M, N}), &s] {
      linear_forward(x, w, {}, y, kLayout, s);
    };
  });
  flops_row("linear backward, input", flops, [&, M = M, K = K, N = N]() -> Launch {
    return [dy = random({M, N}), w = random({N, K}), dx = room({M, K}), &s] {
      linear_backward_input(dy, w, dx, kLayout, Accumulate::no, s);
    };
  });
  flops_row("linear backward, weight", flops, [&, M = M, K = K, N = N]() -> Launch {
    return [x = random({M, K}), dy = random({M, N}), dw = room({N, K}), &s] {
      linear_backward_weight(x, dy, dw, kLayout, Accumulate::no, s);
    };
  });
}

void KernelBench::attention() {
  const Shape one{sizes_.batch, sizes_.sequence, sizes_.heads, sizes_.head_width};
  const Shape sums{sizes_.batch, sizes_.heads, sizes_.sequence};
  const AttentionSpec spec = attention_spec();
  Stream& s = bed_.stream();
  // Causal: half of two products of T x T x D a head; backward makes five.
  const double flops =
      2.0 * static_cast<double>(one.numel()) * static_cast<double>(sizes_.sequence);
  flops_row("attention forward", flops, [&]() -> Launch {
    return [qkv = random(qkv_shape()), out = room(one), lse = bed_.room(DType::f32, sums), spec,
            &s] { attention_forward(qkv, {}, out, lse, spec, s); };
  });
  flops_row("attention backward", 2.5 * flops, [&]() -> Launch {
    const Tensor qkv = random(qkv_shape());
    const Tensor out = room(one);
    const Tensor lse = bed_.room(DType::f32, sums);
    attention_forward(qkv, {}, out, lse, spec, s);
    return [=, dout = random(one), dqkv = room(qkv_shape()), &s] {
      attention_backward(dout, qkv, {}, out, lse, dqkv, spec, s);
    };
  });
  engines_ += fmt::format("{}{} by {}", engines_.empty() ? "" : ", ", name_of(dtype_),
                          attention_engine(qkv_shape(), dtype_, false, spec, s));
}

void KernelBench::norms() {
  constexpr float kEpsilon = 1e-5f;
  const Shape weights{sizes_.hidden};
  Stream& s = bed_.stream();
  const double bytes = bytes_of(hidden_rows());
  bytes_row("rms_norm forward", 2.0 * bytes, [&]() -> Launch {
    return [x = random(hidden_rows()), w = random(weights), y = room(hidden_rows()),
            rstd = bed_.room(DType::f32, {sizes_.rows}),
            &s] { rms_norm_forward(x, w, y, rstd, kEpsilon, s); };
  });
  bytes_row("rms_norm backward", 3.0 * bytes, [&]() -> Launch {
    return [dy = random(hidden_rows()), x = random(hidden_rows()), w = random(weights),
            rstd = bed_.random(DType::f32, {sizes_.rows}), dx = room(hidden_rows()),
            dw = room(weights),
            &s] { rms_norm_backward(dy, x, w, rstd, {}, dx, dw, Accumulate::no, s); };
  });
  bytes_row("add", 3.0 * bytes, [&]() -> Launch {
    return [a = random(hidden_rows()), b = random(hidden_rows()), out = room(hidden_rows()), &s] {
      add(a, b, out, s);
    };
  });
}

void KernelBench::activations() {
  const Shape one{sizes_.rows, sizes_.inner};
  const Shape both{sizes_.rows, 2 * sizes_.inner};
  Stream& s = bed_.stream();
  bytes_row("swiglu forward", 3.0 * bytes_of(one), [&]() -> Launch {
    return [gate_up = random(both), y = room(one), &s] { swiglu_forward(gate_up, y, s); };
  });
  bytes_row("swiglu backward", 6.0 * bytes_of(one), [&]() -> Launch {
    return [dy = random(one), gate_up = random(both), y = room(one), dgate_up = room(both), &s] {
      swiglu_backward(dy, gate_up, y, dgate_up, s);
    };
  });
}

void KernelBench::rotation() {
  const int heads = sizes_.heads + sizes_.kv_heads;
  const Shape rotated{sizes_.batch, sizes_.sequence, heads, sizes_.head_width};
  bytes_row("rope", 2.0 * bytes_of(rotated), [&]() -> Launch {
    return [qkv = random(qkv_shape()), heads, &s = bed_.stream()] {
      rope(qkv, 0, heads, RopeSpec{}, RopeDirection::forward, s);
    };
  });
}

void KernelBench::tokens() {
  const Shape table{sizes_.vocabulary, sizes_.hidden};
  Stream& s = bed_.stream();
  const double bytes = bytes_of(hidden_rows());
  bytes_row("embedding forward", 2.0 * bytes, [&]() -> Launch {
    return [tokens = bed_.indices(sizes_.rows, sizes_.vocabulary), rows = random(table),
            out = room(hidden_rows()),
            &s] { embedding_forward(tokens, rows, out, Accumulate::no, s); };
  });
  bytes_row("embedding backward", bytes + bytes_of(table), [&]() -> Launch {
    return
        [tokens = bed_.indices(sizes_.rows, sizes_.vocabulary), dout = random(hidden_rows()),
         dtable = room(table), &s] { embedding_backward(tokens, dout, dtable, Accumulate::no, s); };
  });
}

void KernelBench::head() {
  const Shape logits{sizes_.head_rows, sizes_.vocabulary};
  bytes_row("cross_entropy, both passes", 2.0 * bytes_of(logits), [&]() -> Launch {
    return
        [x = random(logits), labels = bed_.indices(sizes_.head_rows, sizes_.vocabulary),
         losses = bed_.room(DType::f32, {sizes_.head_rows}), scale = bed_.random(DType::f32, {1}),
         &s = bed_.stream()] { cross_entropy_forward_backward(x, labels, losses, scale, s); };
  });
}

void KernelBench::update() {
  const Shape shape{sizes_.updated};
  UpdateScalars step;
  step.lr = 1e-4;
  const DecaySegment decays{sizes_.updated, 0.1};
  const std::int64_t states = std::int64_t{2} * size_of(DType::f32);  // two moments
  const std::int64_t at_rest = size_of(DType::f32);  // values and what makes them masters
  const auto bytes =
      static_cast<double>(sizes_.updated * (size_of(DType::f32) + 2 * states + 2 * at_rest));
  bytes_row("adamw", bytes, [&]() -> Launch {
    MasterParameters parameters{random(shape), {}};
    if (const auto dtype = master_dtype(dtype_)) parameters.master = bed_.zeros(*dtype, shape);
    return [parameters, gradient = bed_.random(DType::f32, shape),
            first = bed_.random(DType::f32, shape), second = bed_.zeros(DType::f32, shape),
            segment = bed_.upload(decays), scalars = bed_.upload(step), &s = bed_.stream()] {
      adamw_update(parameters, gradient, first, second, segment, 1, {}, scalars, s);
    };
  });
}

void KernelBench::exact_sum() {
  const Shape shape{sizes_.exact};
  const auto bytes =
      static_cast<double>(sizes_.exact * (size_of(DType::f32) + kLimbs * size_of(DType::i64)));
  bytes_row("to_fixed_point", bytes, [&]() -> Launch {
    return [x = random(shape), limbs = bed_.room(DType::i64, {kLimbs, sizes_.exact}),
            bad = bed_.zeros(DType::i64, {1}),
            &s = bed_.stream()] { to_fixed_point(x, limbs, false, bad, s); };
  });
}

void KernelBench::run() {
  measure_copy();
  for (const DType dtype : sizes_.dtypes) {
    dtype_ = dtype;
    measure_products();
    products();
    attention();
    norms();
    activations();
    rotation();
    tokens();
    head();
    update();
  }
  dtype_ = DType::f32;
  exact_sum();
}

std::string KernelBench::text() const {
  return fmt::format("{}; attention in {}\nlimits, measured in this run: {}\n{}",
                     bed_.description(), engines_, limits_, table_.text());
}

}  // namespace

ExitCode bench_kernels_command(const BenchKernelsCommand& command) {
  const Device device = first_device(command.device);
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  KernelBench bench(device, command.threads == 0 ? cores : command.threads, command.repetitions);
  bench.run();
  std::fputs(fmt::format("medians of {} on {}", command.repetitions, bench.text()).c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace sherd
