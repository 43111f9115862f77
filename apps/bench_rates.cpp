#include "apps/bench_rates.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/agreement.h"
#include "apps/bench_table.h"
#include "apps/device_choice.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "apps/rates.h"
#include "apps/text_file.h"
#include "apps/thread_count.h"
#include "core/backend.h"
#include "core/cuda_backend.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "runtime/shard_layout.h"

namespace sherd {
namespace {

constexpr int kRepeats = 9;

class RatesBench {
 public:
  RatesBench(Communicator& ranks, int threads)
      : ranks_(ranks),
        device_(ranks.memory().device()),
        memory_(make_device_memory(device_)),
        stream_(make_stream(device_, "rates", threads)) {
    if (device_.is_cpu()) return;
    scratch_ = Buffer(*memory_, linear_scratch_bytes());
    stream_->set_scratch(scratch_.data(), scratch_.size_bytes());
  }

  DeviceRates run(const std::string& name) {
    const bool cpu = device_.is_cpu();
    DeviceRates rates;
    rates.name = name;
    rates.single_tflops = product_tflops(DType::f32, cpu ? 1024 : 4096);
    rates.half_tflops = product_tflops(DType::bf16, cpu ? 256 : 8192);
    rates.memory_gbs = copy_gbs(std::int64_t{1} << (cpu ? 26 : 30));
    rates.launch_us = pass_us();
    const double small_s = gather_seconds(kSmallBytes);
    const std::int64_t large = std::int64_t{1} << (cpu ? 24 : 28);
    rates.latency_us = small_s * kMicro;
    const double received = static_cast<double>(large) * (ranks_.size() - 1) / ranks_.size();
    const double large_s = gather_seconds(large) - small_s;
    rates.link_gbs = ranks_.size() == 1 ? rates.memory_gbs : received / large_s / kGiga;
    return rates;
  }

 private:
  static constexpr double kGiga = 1e9;
  static constexpr double kTera = 1e12;
  static constexpr double kMicro = 1e6;
  static constexpr std::int64_t kSmallBytes = 4096;

  /// The median over turns of the time that one of `times` in a row takes, after one turn to warm
  /// up.
  double seconds(int times, const std::function<void()>& enqueue) {
    std::vector<double> turns;
    for (int turn = 0; turn <= kRepeats; ++turn) {
      const auto started = std::chrono::steady_clock::now();
      for (int i = 0; i < times; ++i) enqueue();
      stream_->synchronize();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
      if (turn > 0) turns.push_back(passed.count() / times);
    }
    return median(turns);
  }

  /// Random bytes: power, and so speed, depends on them.
  Tensor filled(const Buffer& buffer, DType dtype, Shape shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = uniform({1, 0}, i) - 0.5f;
    const std::unique_ptr<Memory> host_memory = make_host_memory(device_);
    const Buffer host(*host_memory, shape.numel() * size_of(DType::f32));
    std::copy(values.begin(), values.end(), host.tensor(DType::f32, shape).as<float>());
    const Buffer wide(*memory_, shape.numel() * size_of(DType::f32));
    copy_bytes(host.data(), wide.data(), host.size_bytes(), *stream_);
    const Tensor made = buffer.tensor(dtype, shape);
    cast(wide.tensor(DType::f32, shape), made, *stream_);
    stream_->synchronize();
    return made;
  }

  double product_tflops(DType dtype, std::int64_t side) {
    const Shape shape{side, side};
    const Buffer buffers[] = {Buffer(*memory_, shape.numel() * size_of(dtype)),
                              Buffer(*memory_, shape.numel() * size_of(dtype)),
                              Buffer(*memory_, shape.numel() * size_of(dtype))};
    const Tensor a = filled(buffers[0], dtype, shape);
    const Tensor b = filled(buffers[1], dtype, shape);
    const Tensor c = buffers[2].tensor(dtype, shape);
    const double once = seconds(device_.is_cpu() ? 1 : 20, [&] {
      linear_forward(a, b, {}, c, WeightLayout::out_in, *stream_);
    });
    const auto edge = static_cast<double>(side);
    return 2.0 * edge * edge * edge / once / kTera;
  }

  double copy_gbs(std::int64_t bytes) {
    const Buffer from(*memory_, bytes);
    const Buffer to(*memory_, bytes);
    const Tensor source = from.tensor(DType::u8, {bytes});
    const Tensor target = to.tensor(DType::u8, {bytes});
    fill_zero(source, *stream_);
    return 2.0 * static_cast<double>(bytes) / seconds(4, [&] { copy(source, target, *stream_); }) /
           kGiga;
  }

  /// A unit's pass is about so many operations.
  double pass_us() {
    constexpr int kOperations = 12;
    const Buffer from(*memory_, kAlignmentBytes);
    const Buffer to(*memory_, kAlignmentBytes);
    const Tensor source = from.tensor(DType::u8, {kAlignmentBytes});
    const Tensor target = to.tensor(DType::u8, {kAlignmentBytes});
    return kOperations * kMicro * seconds(200, [&] { copy(source, target, *stream_); });
  }

  double gather_seconds(std::int64_t bytes) {
    const std::vector<double> even(static_cast<std::size_t>(ranks_.size()), 1.0);
    const std::vector<Shard> shards = cut_by_weights(bytes, even, 1);
    const Buffer own(ranks_.memory(), bytes);
    const Buffer whole(ranks_.memory(), bytes);
    const std::int64_t share = shards[static_cast<std::size_t>(ranks_.rank())].numel;
    const Tensor source = own.tensor(DType::u8, {share});
    const Tensor target = whole.tensor(DType::u8, {bytes});
    fill_zero(source, *stream_);
    return seconds(4, [&] { ranks_.all_gather(source, target, shards, *stream_); });
  }

  Communicator& ranks_;
  Device device_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_;
  Buffer scratch_;
};

}  // namespace

ExitCode bench_rates_command(const BenchRatesCommand& command, MpiSession& session) {
  const std::unique_ptr<Communicator> world = session.world();
  const Device device = on_all_ranks(
      *world, [&] { return choose_device(command.device, /*share_gpus=*/false, session, *world); });
  const auto& host = session.hostnames()[static_cast<std::size_t>(world->rank())];
  const int threads = choose_threads(*world, host, 0).threads;
  const std::unique_ptr<Communicator> on_device =
      device_communicator(device, *world, session, NcclOptions().timeout_seconds);
  const std::string name = device.is_cpu()
                               ? fmt::format("CPU, {} a rank", counted(threads, "thread"))
                               : cuda_device_info(device.index).name;
  const DeviceRates rates = run_or_end_job(session, [&] {
    const DeviceRates own = RatesBench(on_device ? *on_device : *world, threads)
                                .run(fmt::format("{}, {}", name, counted(world->size(), "rank")));
    std::vector<DeviceRates> ranks;
    for (const std::string& text : gather_texts(*world, rates_json(own))) {
      ranks.push_back(rates_of_json(text));
    }
    return rates_of_ranks(std::move(ranks));
  });
  if (world->rank() != 0) return ExitCode::ok;
  if (command.write.empty()) {
    std::fputs(rates_json(rates).c_str(), stdout);
    return ExitCode::ok;
  }
  write_text_file(command.write, rates_json(rates));
  std::printf("%s\n", to_string(rates).c_str());
  return ExitCode::ok;
}

}  // namespace sherd
