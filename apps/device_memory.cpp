#include "apps/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/proc_memory.h"
#include "apps/quantity.h"
#include "collectives/shared_gpus.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
/// What modules of kernels, cuBLASLt and cuDNN take once they have run, and with several ranks what
/// NCCL's two communicators take too. A run tells what it really was: `device …`, memory.json.
constexpr std::int64_t kLibraryBytes = kGibibyte + kGibibyte / 2;
constexpr std::int64_t kCommunicatorBytes = kGibibyte + kGibibyte / 2;
/// What the driver takes for a process before that: 527 MiB on an H200.
constexpr std::int64_t kContextBytes = kGibibyte / 8 * 5;
/// Of a host's memory: for the process itself, its data and buffers of messages.
constexpr double kHostPart = 0.08;

std::int64_t library_reserve(int ranks) {
  return kLibraryBytes + (ranks > 1 ? kCommunicatorBytes : 0);
}

}  // namespace

std::int64_t gpu_reserve(int ranks) { return kContextBytes + library_reserve(ranks); }

std::string device_memory_text(const CudaDeviceInfo& device, std::int64_t planned_bytes) {
  const std::int64_t used = device.total_bytes - device.free_bytes;
  return fmt::format(
      "{} of {} in use: {} planned; {} beside it: driver, NCCL, cuBLASLt, cuDNN, other programs",
      bytes_text(used), bytes_text(device.total_bytes), bytes_text(planned_bytes),
      bytes_text(used - planned_bytes));
}

UsableMemory usable_memory(const CudaDeviceInfo& device, int ranks) {
  UsableMemory usable;
  usable.free_bytes = device.free_bytes;
  usable.reserve_bytes = std::min(usable.free_bytes, library_reserve(ranks));
  usable.source = fmt::format(
      "{} of {} free on {} beside the driver's context, less {} for kernels, cuBLASLt, cuDNN{}",
      bytes_text(device.free_bytes), bytes_text(device.total_bytes), device.name,
      bytes_text(usable.reserve_bytes), ranks > 1 ? " and NCCL" : "");
  return usable;
}

UsableMemory usable_host_memory(std::int64_t available_bytes, int local_ranks) {
  UsableMemory usable;
  usable.free_bytes = available_bytes / local_ranks;
  usable.reserve_bytes =
      static_cast<std::int64_t>(kHostPart * static_cast<double>(usable.free_bytes));
  usable.source = fmt::format("{} of this machine shared by {}, less {} for all but the arena",
                              bytes_text(available_bytes), counted(local_ranks, "rank"),
                              bytes_text(usable.reserve_bytes));
  return usable;
}

UsableMemory usable_memory_here(DeviceKind kind, int ranks) {
  if (kind == DeviceKind::cpu) return usable_host_memory(host_available_bytes(), ranks);
  const int gpus = cuda_device_count();
  require(gpus > 0, "there is no GPU here whose memory could be read: {}; give a size",
          cuda_absence());
  const auto usable_of = [&](int index) {
    CudaDeviceInfo info = cuda_device_info(index);
    info.free_bytes /= ranks_per_gpu(ranks, gpus);
    return usable_memory(info, ranks);
  };
  UsableMemory least = usable_of(0);
  for (int index = 1; index < std::min(gpus, ranks); ++index) {
    const UsableMemory other = usable_of(index);
    if (other.bytes() < least.bytes()) least = other;
  }
  return least;
}

}  // namespace sherd
