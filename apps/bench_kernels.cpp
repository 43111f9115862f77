#include "apps/bench_kernels.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "apps/bench_table.h"
#include "core/buffer.h"
#include "core/cpu_stream.h"
#include "core/rng.h"
#include "kernels/activation.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/elementwise.h"
#include "kernels/fixed_point.h"
#include "kernels/linear.h"
#include "kernels/norm.h"

namespace sherd {
namespace {

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSequence = 512;
constexpr std::int64_t kRows = kBatch * kSequence;
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kInner = 1376;
constexpr std::int64_t kVocabulary = 4096;
constexpr int kHeads = 8;
constexpr int kKvHeads = 4;
constexpr std::int64_t kHeadDim = 64;
constexpr int kQkvHeads = kHeads + 2 * kKvHeads;

class KernelBench {
 public:
  explicit KernelBench(const BenchKernelsCommand& command)
      : command_(command),
        stream_("bench", command.threads),
        table_({"kernel (f32)", "ms", "rate", "limit", "share"}) {}

  void run();
  std::string text() const { return table_.text(); }

 private:
  /// Random values, so that nothing runs faster than it does in training.
  Tensor tensor(Shape shape, DType dtype = DType::f32) {
    buffers_.push_back(std::make_unique<Buffer>(memory_, shape.numel() * size_of(dtype)));
    const Tensor made = buffers_.back()->tensor(dtype, shape);
    if (dtype != DType::f32) return made;
    for (std::int64_t i = 0; i < made.numel(); ++i) {
      made.as<float>()[i] = uniform({buffers_.size(), 0}, static_cast<std::uint64_t>(i)) - 0.5f;
    }
    return made;
  }

  double time_ms(const std::function<void()>& enqueue_once) {
    std::vector<double> ms;
    for (int i = 0; i <= command_.repetitions; ++i) {
      const auto started = std::chrono::steady_clock::now();
      enqueue_once();
      stream_.synchronize();
      if (i == 0) continue;
      ms.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started)
              .count());
    }
    return median(ms);
  }

  void flops_row(const char* name, double flops, const std::function<void()>& once) {
    const double ms = time_ms(once);
    const double rate = flops / ms / 1e6;
    table_.add({name, fmt::format("{:.3f}", ms), fmt::format("{:.0f} GFLOP/s", rate),
                fmt::format("{:.0f}", gflops_), fmt::format("{:.0f}%", 100.0 * rate / gflops_)});
  }

  void bytes_row(const char* name, double bytes, const std::function<void()>& once) {
    const double ms = time_ms(once);
    const double rate = bytes / ms / 1e6;
    table_.add({name, fmt::format("{:.3f}", ms), fmt::format("{:.1f} GB/s", rate),
                fmt::format("{:.1f}", gb_per_s_),
                fmt::format("{:.0f}%", 100.0 * rate / gb_per_s_)});
  }

  void measure_ceilings();
  void products();
  void attention();
  void rows();
  void shards();

  BenchKernelsCommand command_;
  HostMemory memory_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  CpuStream stream_;
  BenchTable table_;
  double gflops_ = 1.0;
  double gb_per_s_ = 1.0;
};

void KernelBench::measure_ceilings() {
  constexpr std::int64_t kSide = 2048;
  const Tensor a = tensor({kSide, kSide});
  const Tensor b = tensor({kSide, kSide});
  const Tensor c = tensor({kSide, kSide});
  const double product_ms =
      time_ms([&] { linear_forward(a, b, {}, c, WeightLayout::out_in, stream_); });
  gflops_ = 2.0 * std::pow(static_cast<double>(kSide), 3) / product_ms / 1e6;
  const Tensor from = tensor({std::int64_t{1} << 24});
  const Tensor to = tensor({std::int64_t{1} << 24});
  const double copy_ms = time_ms([&] { copy(from, to, stream_); });
  gb_per_s_ = 2.0 * static_cast<double>(from.size_bytes()) / copy_ms / 1e6;
}

void KernelBench::products() {
  const Tensor x = tensor({kRows, kHidden});
  const Tensor w = tensor({2 * kInner, kHidden});
  const Tensor y = tensor({kRows, 2 * kInner});
  const Tensor dw = tensor({2 * kInner, kHidden});
  const double flops = 2.0 * kRows * kHidden * 2.0 * kInner;
  const WeightLayout layout = WeightLayout::out_in;
  flops_row("linear forward", flops, [&] { linear_forward(x, w, {}, y, layout, stream_); });
  flops_row("linear backward, input", flops,
            [&] { linear_backward_input(y, w, x, layout, Accumulate::no, stream_); });
  flops_row("linear backward, weight", flops,
            [&] { linear_backward_weight(x, y, dw, layout, Accumulate::yes, stream_); });
}

void KernelBench::attention() {
  const Tensor qkv = tensor({kBatch, kSequence, kQkvHeads, kHeadDim});
  const Tensor dqkv = tensor({kBatch, kSequence, kQkvHeads, kHeadDim});
  const Tensor out = tensor({kBatch, kSequence, kHeads, kHeadDim});
  const Tensor dout = tensor({kBatch, kSequence, kHeads, kHeadDim});
  const Tensor lse = tensor({kBatch, kHeads, kSequence});
  const AttentionSpec spec{.heads = kHeads,
                           .kv_heads = kKvHeads,
                           .causal = true,
                           .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim))};
  // Causal: half of two products of T x T x D a head; backward makes five.
  const double flops = 2.0 * kBatch * kHeads * kSequence * kSequence * kHeadDim;
  flops_row("attention forward", flops,
            [&] { attention_forward(qkv, {}, out, lse, spec, stream_); });
  flops_row("attention backward", 2.5 * flops,
            [&] { attention_backward(dout, qkv, {}, out, lse, dqkv, spec, stream_); });
}

void KernelBench::rows() {
  const Tensor x = tensor({kRows, kHidden});
  const Tensor y = tensor({kRows, kHidden});
  const Tensor dx = tensor({kRows, kHidden});
  const Tensor weight = tensor({kHidden});
  const Tensor dweight = tensor({kHidden});
  const Tensor rstd = tensor({kRows});
  const auto bytes = static_cast<double>(x.size_bytes());
  bytes_row("rms_norm forward", 2.0 * bytes,
            [&] { rms_norm_forward(x, weight, y, rstd, 1e-5f, stream_); });
  bytes_row("rms_norm backward", 3.0 * bytes, [&] {
    rms_norm_backward(y, x, weight, rstd, {}, dx, dweight, Accumulate::no, stream_);
  });
  const Tensor gate_up = tensor({kRows, 2 * kInner});
  const Tensor activated = tensor({kRows, kInner});
  const auto inner_bytes = static_cast<double>(activated.size_bytes());
  bytes_row("swiglu forward", 3.0 * inner_bytes,
            [&] { swiglu_forward(gate_up, activated, stream_); });
  bytes_row("swiglu backward", 6.0 * inner_bytes,
            [&] { swiglu_backward(activated, gate_up, activated, gate_up, stream_); });
  const Tensor logits = tensor({kRows, kVocabulary});
  const Tensor losses = tensor({kRows});
  const Tensor scale = tensor({1});
  const Tensor labels = tensor({kRows}, DType::i32);
  for (std::int64_t r = 0; r < kRows; ++r) {
    labels.as<std::int32_t>()[r] = static_cast<std::int32_t>(r % kVocabulary);
  }
  bytes_row("cross_entropy forward + backward", 2.0 * static_cast<double>(logits.size_bytes()),
            [&] { cross_entropy_forward_backward(logits, labels, losses, scale, stream_); });
}

void KernelBench::shards() {
  constexpr std::int64_t kNumel = std::int64_t{1} << 23;
  const MasterParameters parameters{tensor({kNumel}), {}};
  const Tensor gradient = tensor({kNumel});
  const Tensor first = tensor({kNumel});
  const Tensor second = tensor({kNumel});
  for (std::int64_t i = 0; i < kNumel; ++i) {  // a second moment is not negative
    second.as<float>()[i] = std::abs(second.as<float>()[i]);
  }
  const DecaySegment segment{kNumel, 0.1};
  UpdateScalars scalars;
  scalars.lr = 1e-4;
  const auto bytes = static_cast<double>(gradient.size_bytes());
  bytes_row("adamw", 7.0 * bytes, [&] {
    adamw_update(parameters, gradient, first, second, &segment, 1, {}, &scalars, stream_);
  });
  const Tensor limbs = tensor({kLimbs, kNumel}, DType::i64);
  const Tensor count = tensor({1}, DType::i64);
  bytes_row("to_fixed_point", bytes + static_cast<double>(limbs.size_bytes()),
            [&] { to_fixed_point(gradient, limbs, false, count, stream_); });
}

void KernelBench::run() {
  measure_ceilings();
  products();
  attention();
  rows();
  shards();
}

}  // namespace

ExitCode bench_kernels_command(const BenchKernelsCommand& command) {
  BenchKernelsCommand resolved = command;
  if (resolved.threads == 0) {
    resolved.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  KernelBench bench(resolved);
  bench.run();
  std::fputs(fmt::format("{} threads, medians of {}; limits measured here: a product of 2048 x "
                         "2048 x 2048, a copy of 64 MiB (read + written)\n{}",
                         resolved.threads, resolved.repetitions, bench.text())
                 .c_str(),
             stdout);
  return ExitCode::ok;
}

}  // namespace sherd
