#include "apps/bench_bed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "apps/bench_table.h"
#include "apps/quantity.h"
#include "core/cuda_backend.h"
#include "core/rng.h"
#include "kernels/elementwise.h"
#include "kernels/matmul_plans.h"
#include "kernels/random_fill.h"

namespace sherd {
namespace {

/// Enough for the operands of the largest product that is measured, in f32.
constexpr std::int64_t kWorkBytes = std::int64_t{4} << 30;
constexpr double kSampleMs =
    15.0;  ///< launches fill it, so that waiting for their end costs nothing
constexpr int kMostLaunches = 2000;

/// A CPU's third level may be shared by far more cores than run here.
std::int64_t cache_bytes(Device device) {
  if (!device.is_cpu()) return cuda_device_info(device.index).l2_bytes;
  constexpr std::int64_t kMost = std::int64_t{32} << 20;
  const std::int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? std::min(bytes, kMost) : kMost;
}

}  // namespace

BenchBed::BenchBed(Device device, int threads, int repetitions)
    : device_(device),
      threads_(threads),
      repetitions_(repetitions),
      cache_bytes_(cache_bytes(device)),
      memory_(make_device_memory(device)),
      work_memory_(make_device_memory(device)),
      host_memory_(make_host_memory(device)),
      stream_(make_stream(device, "bench", threads)) {
  if (!device.is_cpu()) work_ = Buffer(*work_memory_, kWorkBytes);
}

std::string BenchBed::description() const {
  if (device_.is_cpu()) return counted(threads_, "thread");
  const CudaDeviceInfo info = cuda_device_info(device_.index);
  return fmt::format("{} (sm_{})", info.name, info.compute_capability);
}

void BenchBed::set_scratch(std::int64_t bytes) {
  if (device_.is_cpu()) return;
  scratch_ = Buffer(*work_memory_, bytes);
  stream_->set_scratch(scratch_.data(), bytes);
}

Tensor BenchBed::room(DType dtype, const Shape& shape) {
  operands_.emplace_back(*memory_, shape.numel() * size_of(dtype));
  return operands_.back().tensor(dtype, shape);
}

Tensor BenchBed::random(DType dtype, const Shape& shape) {
  const Tensor made = room(dtype, shape);
  fill_random(made, *stream_);
  return made;
}

Tensor BenchBed::zeros(DType dtype, const Shape& shape) {
  const Tensor made = room(dtype, shape);
  fill_zero(made, *stream_);
  return made;
}

Tensor BenchBed::indices(std::int64_t count, std::int64_t limit) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(uniform({1, 0}, i) * static_cast<float>(limit - 1));
  }
  const Tensor bytes = upload_bytes(values.data(), count * size_of(DType::i32));
  return {bytes.data(), DType::i32, {count}, device_};
}

Tensor BenchBed::upload_bytes(const void* from, std::int64_t bytes) {
  const Buffer host(*host_memory_, bytes);
  std::memcpy(host.data(), from, static_cast<std::size_t>(bytes));
  const Tensor made = room(DType::u8, {bytes});
  copy_bytes(host.data(), made.data(), bytes, *stream_);
  stream_->synchronize();
  return made;
}

double BenchBed::run(const std::vector<Launch>& launches, int count) {
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) launches[next_++ % launches.size()]();
  stream_->synchronize();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started)
      .count();
}

double BenchBed::time_ms(const std::function<Launch()>& make) {
  std::vector<Launch> launches;
  do {
    launches.push_back(make());
  } while (memory_->used_bytes() < 2 * cache_bytes_);
  stream_->synchronize();
  const int turn = static_cast<int>(launches.size());
  run(launches, turn);
  if (!device_.is_cpu()) {
    tune_matmul_plans(work_.tensor(DType::u8, {work_.size_bytes()}), *stream_);
    run(launches, turn);
  }
  const double once = run(launches, turn) / turn;
  const int count = std::clamp(static_cast<int>(kSampleMs / once) + 1, 1, kMostLaunches);
  std::vector<double> ms;
  ms.reserve(static_cast<std::size_t>(repetitions_));
  for (int i = 0; i < repetitions_; ++i) ms.push_back(run(launches, count) / count);
  operands_.clear();
  return median(ms);
}

double BenchBed::sustained_tflops() {
  return sustained_matmul_tflops(work_.tensor(DType::u8, {work_.size_bytes()}), *stream_);
}

}  // namespace sherd
