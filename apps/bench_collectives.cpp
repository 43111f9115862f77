#include "apps/bench_collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "apps/agreement.h"
#include "apps/bench_table.h"
#include "apps/bench_way.h"
#include "apps/device_choice.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "collectives/control_exchange.h"
#include "collectives/gpu.h"

namespace sherd {
namespace {

/// What is compared, and with what.
struct Comparison {
  std::vector<BenchWay> ways;
  std::vector<std::int64_t> sizes;
  DType sent = DType::f32;
  double limit_gb_per_s = 0.0;
  std::string limit;  ///< what it is
  std::string notes;  ///< lines above the table
};

double slowest(Communicator& world, double ms) {
  const std::vector<double> all = gather_values(world, ms);
  return *std::max_element(all.begin(), all.end());
}

/// GB/s of large copies by a core of each rank, all at once, of the slowest; each byte counted
/// once.
double core_copy_gb_per_s(Communicator& world) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  constexpr int kTimes = 9;
  HostMemory memory;
  const Buffer from(memory, kBytes);
  const Buffer to(memory, kBytes);
  std::memset(from.data(), 1, kBytes);
  std::memset(to.data(), 2, kBytes);
  gather_values(world, 0);
  std::vector<double> ms;
  for (int i = 0; i < kTimes; ++i) {
    const auto started = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started)
            .count());
  }
  return static_cast<double>(kBytes) / slowest(world, median(ms)) / 1e6;
}

Comparison compare_on_cpus(const BenchCollectivesCommand& command, Communicator& world,
                           MpiSession& session) {
  constexpr std::int64_t kSmallest = std::int64_t{64} << 10;
  constexpr std::int64_t kLargest = std::int64_t{64} << 20;
  const std::int64_t largest = command.largest_bytes == 0 ? kLargest : command.largest_bytes;
  MpiOptions plain;
  plain.shared_window = false;
  Comparison made;
  made.sizes = bench_sizes(kSmallest, largest);
  made.limit_gb_per_s = core_copy_gb_per_s(world);
  made.limit = "a core of each rank, all at once";
  made.ways.emplace_back("window", session.world(), largest, DType::f32, DType::f32);
  made.ways.emplace_back("MPI", session.world(plain), largest, DType::f32, DType::f32);
  return made;
}

/// What a communicator that may choose has measured, and what it chose.
std::string choice_text(const Communicator& automatic, const std::vector<TransportTime>& times) {
  std::string text = "training takes " + automatic.description() + "\n";
  if (times.empty()) return text;
  BenchTable table({"measured by it at the start", "operation", "NCCL ms", "peer ms", "faster"});
  for (const TransportTime& time : times) {
    table.add({bytes_text(time.bytes), time.gather ? "all-gather" : "reduce-scatter",
               fmt::format("{:.3f}", time.nccl_ms), fmt::format("{:.3f}", time.peer_ms),
               time.peer_ms < time.nccl_ms ? "peer" : "NCCL"});
  }
  return text + table.text();
}

Comparison compare_on_gpus(const BenchCollectivesCommand& command, Device device,
                           Communicator& world, MpiSession& session) {
  constexpr std::int64_t kSmallest = std::int64_t{1} << 20;
  constexpr std::int64_t kLargest = std::int64_t{512} << 20;
  constexpr std::int64_t kCopyBytes = std::int64_t{256} << 20;
  const std::int64_t largest = command.largest_bytes == 0 ? kLargest : command.largest_bytes;
  Comparison made;
  made.sizes = bench_sizes(kSmallest, largest);
  made.sent = DType::bf16;
  GpuOptions options = gpu_options(session);
  const auto automatic = make_gpu_communicator(world, device, "automatic", options);
  const std::vector<TransportTime> times = measured_transports(*automatic);
  made.notes = choice_text(*automatic, times);
  const auto add = [&](const char* name, GpuTransport transport) {
    options.transport = transport;
    made.ways.emplace_back(name, make_gpu_communicator(world, device, name, options), largest,
                           DType::bf16, DType::f32);
  };
  add("NCCL", GpuTransport::nccl);
  if (times.empty()) return made;
  add("peer", GpuTransport::peer);
  made.limit_gb_per_s = peer_copy_gb_per_s(world, device, kCopyBytes);
  made.limit = "a copy from the next GPU, all at once";
  return made;
}

std::vector<std::string> header(const Comparison& compared) {
  std::vector<std::string> names{fmt::format("{} in all", name_of(compared.sent)), "operation"};
  for (const BenchWay& way : compared.ways) {
    names.push_back(way.name() + " ms");
    names.emplace_back("bus GB/s");
    if (compared.limit_gb_per_s > 0.0) names.emplace_back("of copy");
  }
  return names;
}

/// Medians of the slowest ranks, the ways in turns.
std::vector<double> time_ways(Comparison& compared, bool gather, std::int64_t bytes,
                              int repetitions, Communicator& world) {
  std::vector<std::vector<double>> ms(compared.ways.size());
  for (int i = 0; i <= repetitions; ++i) {
    for (std::size_t w = 0; w < ms.size(); ++w) {
      const double once = compared.ways[w].time_ms(gather, bytes);
      if (i > 0) ms[w].push_back(once);  // the first of each size wakes caches and pages
    }
  }
  std::vector<double> medians;
  medians.reserve(ms.size());
  for (const auto& one : ms) medians.push_back(slowest(world, median(one)));
  return medians;
}

std::vector<std::string> row(const Comparison& compared, bool gather, std::int64_t bytes,
                             const std::vector<double>& ms, int ranks) {
  constexpr double kPercent = 100.0;
  std::vector<std::string> cells{bytes_text(bytes), gather ? "all-gather" : "reduce-scatter"};
  const double moved = static_cast<double>(bytes) * (ranks - 1) / ranks;
  for (const double one : ms) {
    const double rate = moved / one / 1e6;
    cells.push_back(fmt::format("{:.3f}", one));
    cells.push_back(fmt::format("{:.2f}", rate));
    if (compared.limit_gb_per_s > 0.0) {
      cells.push_back(fmt::format("{:.0f}%", kPercent * rate / compared.limit_gb_per_s));
    }
  }
  return cells;
}

BenchTable measure(Comparison& compared, int repetitions, Communicator& world) {
  BenchTable table(header(compared));
  for (const std::int64_t bytes : compared.sizes) {
    for (const bool gather : {true, false}) {
      const auto ms = time_ways(compared, gather, bytes, repetitions, world);
      table.add(row(compared, gather, bytes, ms, world.size()));
    }
  }
  return table;
}

}  // namespace

std::vector<std::int64_t> bench_sizes(std::int64_t smallest, std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = smallest; bytes < largest; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(largest);
  return sizes;
}

ExitCode bench_collectives_command(const BenchCollectivesCommand& command, MpiSession& session) {
  const std::unique_ptr<Communicator> world = session.world();
  const Device device = on_all_ranks(
      *world, [&] { return choose_device(command.device, /*share_gpus=*/false, session, *world); });
  Comparison compared = device.is_cpu() ? compare_on_cpus(command, *world, session)
                                        : compare_on_gpus(command, device, *world, session);
  const BenchTable table =
      run_or_end_job(session, [&] { return measure(compared, command.repetitions, *world); });
  if (session.rank() != 0) return ExitCode::ok;
  std::string text = compared.notes;
  text += fmt::format(
      "{} on {}, medians of {} of the slowest rank; bus GB/s: bytes in all x (ranks - 1) / ranks / "
      "time\n",
      counted(session.size(), "rank"), device.is_cpu() ? "CPUs" : "GPUs", command.repetitions);
  if (compared.limit_gb_per_s > 0.0) {
    text += fmt::format("copy: {:.1f} GB/s, {}, measured in this run\n", compared.limit_gb_per_s,
                        compared.limit);
  }
  std::fputs((text + table.text()).c_str(), stdout);
  return ExitCode::ok;
}

}  // namespace sherd
