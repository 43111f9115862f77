#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/device.h"
#include "core/recording.h"
#include "core/stream.h"

namespace sherd {

/// What one CUDA device says of itself.
struct CudaDeviceInfo {
  std::string name;
  int compute_capability = 0;  ///< 90 for 9.0
  int multiprocessors = 0;
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::string pci_bus_id;
};

// The CUDA side of core/backend.h, real in core/cuda/ and absent in core/cuda_absent.cpp, where
// every call throws ArgumentError. CMake picks one.

/// Devices this process may use: 0 where there is no driver, no device or no CUDA in the build.
int cuda_device_count();
/// Why there are none, for people; empty when there are.
std::string cuda_absence();
CudaDeviceInfo cuda_device_info(int index);
/// Whether `index` can read `peer`'s memory directly.
bool cuda_can_access_peer(int index, int peer);
/// GB/s of copies of 64 MiB, the median of a few, from GPU `from` to GPU `to` or inside one:
/// directly where `to` can read `from`, else through the host.
double cuda_copy_rate(int from, int to);
/// "CUDA 13.0, driver 13.0" or "none".
std::string cuda_versions();

std::unique_ptr<Stream> make_cuda_stream(Device device, const std::string& name);
/// Plain device memory (cudaMalloc).
std::unique_ptr<Memory> make_cuda_memory(Device device);
/// Pinned host memory.
std::unique_ptr<Memory> make_pinned_memory();
void copy_bytes_cuda(const void* from, void* to, std::int64_t bytes, Stream& stream);
void mark_cuda(std::uint32_t* word, std::uint32_t value, Stream& stream);
void call_host_cuda(void (*work)(void*), void* argument, Stream& stream);
std::unique_ptr<Recording> record_cuda_streams(std::span<Stream* const> streams,
                                               const std::function<void()>& enqueue);

}  // namespace sherd
