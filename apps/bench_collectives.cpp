#include "apps/bench_collectives.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "apps/bench_table.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "core/cpu_stream.h"
#include "core/rng.h"
#include "runtime/shard_layout.h"

namespace sherd {
namespace {

/// One way of moving bytes, with buffers of the largest size and random contents.
class Way {
 public:
  Way(std::unique_ptr<Communicator> world, std::int64_t numel)
      : world_(std::move(world)),
        stream_("bench"),
        whole_(world_->memory(), numel * size_of(DType::f32)),
        own_(world_->memory(), numel * size_of(DType::f32)) {
    auto* values = whole_.tensor(DType::f32, {numel}).as<float>();
    const RngKey key{1, static_cast<std::uint64_t>(world_->rank())};
    for (std::int64_t i = 0; i < numel; ++i) {
      values[i] = uniform(key, static_cast<std::uint64_t>(i));
    }
    std::memcpy(own_.data(), whole_.data(), static_cast<std::size_t>(whole_.size_bytes()));
  }

  /// Milliseconds of one all-gather or reduce-scatter of `numel` elements in all, from a barrier
  /// on.
  double time(bool gather, std::int64_t numel) {
    const std::vector<double> even(static_cast<std::size_t>(world_->size()), 1.0);
    const std::vector<Shard> shards = cut_by_weights(numel, even, 1);
    const Tensor whole = whole_.tensor(DType::f32, {numel});
    const std::int64_t share = shards[static_cast<std::size_t>(world_->rank())].numel;
    const Tensor own = own_.tensor(DType::f32, {share});
    world_->barrier(stream_);
    stream_.synchronize();
    const auto started = std::chrono::steady_clock::now();
    if (gather) {
      world_->all_gather(own, whole, shards, stream_);
    } else {
      world_->reduce_scatter(whole, own, shards, stream_);
    }
    stream_.synchronize();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started)
        .count();
  }

 private:
  std::unique_ptr<Communicator> world_;
  CpuStream stream_;
  Buffer whole_;
  Buffer own_;
};

/// GB/s of a large copy by one core, read and written bytes counted: what moving data costs here.
double copy_gb_per_s() {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  constexpr int kTimes = 9;
  HostMemory memory;
  const Buffer from(memory, kBytes);
  const Buffer to(memory, kBytes);
  std::memset(from.data(), 1, kBytes);
  std::memset(to.data(), 2, kBytes);
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const auto started = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  return 2.0 * static_cast<double>(kBytes) / median(seconds) / 1e9;
}

}  // namespace

ExitCode bench_collectives_command(const BenchCollectivesCommand& command, MpiSession& session) {
  const std::int64_t largest = command.largest_bytes / size_of(DType::f32);
  MpiOptions plain_options;
  plain_options.shared_window = false;
  Way window(session.world(), largest);
  Way plain(session.world(plain_options), largest);
  BenchTable table({"f32 in all", "operation", "window ms", "bus GB/s", "MPI ms", "MPI / window"});
  run_or_end_job(session, [&] {
    for (std::int64_t bytes = std::int64_t{1} << 16; bytes <= command.largest_bytes; bytes *= 4) {
      for (const bool gather : {true, false}) {
        std::vector<double> window_ms;
        std::vector<double> plain_ms;
        for (int i = 0; i <= command.repetitions; ++i) {
          const double w = window.time(gather, bytes / size_of(DType::f32));
          const double p = plain.time(gather, bytes / size_of(DType::f32));
          if (i == 0) continue;  // the first of each size wakes caches and pages
          window_ms.push_back(w);
          plain_ms.push_back(p);
        }
        const double w = median(window_ms);
        const double p = median(plain_ms);
        const double moved = static_cast<double>(bytes) * (session.size() - 1) / session.size();
        table.add({bytes_text(bytes), gather ? "all-gather" : "reduce-scatter",
                   fmt::format("{:.3f}", w), fmt::format("{:.2f}", moved / w / 1e6),
                   fmt::format("{:.3f}", p), fmt::format("{:.1f}", p / w)});
      }
    }
    return 0;
  });
  if (session.rank() != 0) return ExitCode::ok;
  std::fputs(
      fmt::format("{} ranks, medians of {}; one core copies {:.1f} GB/s (read + written)\n{}",
                  session.size(), command.repetitions, copy_gb_per_s(), table.text())
          .c_str(),
      stdout);
  return ExitCode::ok;
}

}  // namespace sherd
