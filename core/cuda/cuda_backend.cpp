#include "core/cuda_backend.h"

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/error.h"

namespace sherd {
namespace {

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(Device device) : device_(device) {}
  Device device() const override { return device_; }

 private:
  void* take(std::int64_t bytes) override {
    const DeviceGuard guard(device_);
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, static_cast<std::size_t>(bytes));
    if (result == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      const CudaDeviceInfo info = cuda_device_info(device_.index);
      throw ApiError("CUDA", static_cast<int>(result),
                     fmt::format("{} has {} bytes free, {} are needed", name_of(device_),
                                 info.free_bytes, bytes),
                     "cudaMalloc", __builtin_FILE(), __builtin_LINE());
    }
    SHERD_CHECK(result);
    return data;
  }
  void give(void* data, std::int64_t /*bytes*/) noexcept override { cudaFree(data); }

  Device device_;
};

class PinnedMemory final : public Memory {
 public:
  Device device() const override { return {}; }

 private:
  void* take(std::int64_t bytes) override {
    void* data = nullptr;
    SHERD_CHECK(cudaHostAlloc(&data, static_cast<std::size_t>(bytes), cudaHostAllocDefault));
    return data;
  }
  void give(void* data, std::int64_t /*bytes*/) noexcept override { cudaFreeHost(data); }
};

std::string version_text(int version) {
  constexpr int kMajor = 1000;
  constexpr int kMinor = 10;
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

cudaError_t count_devices(int& count) {
  count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess) {
    cudaGetLastError();
    count = 0;
  }
  return result;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  count_devices(count);
  return count;
}

std::string cuda_absence() {
  int count = 0;
  const cudaError_t result = count_devices(count);
  if (result == cudaSuccess) return count > 0 ? "" : "no CUDA device";
  int driver = 0;
  if (result != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess) {
    return cudaGetErrorString(result);
  }
  if (driver == 0) return "no NVIDIA driver";
  return fmt::format("the driver is for CUDA {}, older than the runtime of this build",
                     version_text(driver));
}

CudaDeviceInfo cuda_device_info(int index) {
  const DeviceGuard guard({DeviceKind::cuda, index});
  cudaDeviceProp properties{};
  SHERD_CHECK(cudaGetDeviceProperties(&properties, index));
  std::size_t free = 0;
  std::size_t total = 0;
  SHERD_CHECK(cudaMemGetInfo(&free, &total));
  constexpr int kBusIdLength = 32;
  char bus_id[kBusIdLength] = {};
  SHERD_CHECK(cudaDeviceGetPCIBusId(bus_id, kBusIdLength, index));
  CudaDeviceInfo info;
  info.name = properties.name;
  info.compute_capability = properties.major * 10 + properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.total_bytes = static_cast<std::int64_t>(total);
  info.free_bytes = static_cast<std::int64_t>(free);
  info.l2_bytes = properties.l2CacheSize;
  info.pci_bus_id = bus_id;
  return info;
}

bool cuda_can_access_peer(int index, int peer) {
  int can = 0;
  SHERD_CHECK(cudaDeviceCanAccessPeer(&can, index, peer));
  return can != 0;
}

std::string cuda_versions() {
  int runtime = 0;
  int driver = 0;
  SHERD_CHECK(cudaRuntimeGetVersion(&runtime));
  SHERD_CHECK(cudaDriverGetVersion(&driver));
  return fmt::format("CUDA {}, {}", version_text(runtime),
                     driver == 0 ? "no driver" : "driver for " + version_text(driver));
}

std::unique_ptr<Stream> make_cuda_stream(Device device, const std::string& name) {
  return std::make_unique<CudaStream>(device, name);
}

std::unique_ptr<Memory> make_cuda_memory(Device device) {
  return std::make_unique<CudaMemory>(device);
}

std::unique_ptr<Memory> make_pinned_memory() { return std::make_unique<PinnedMemory>(); }

void copy_bytes_cuda(const void* from, void* to, std::int64_t bytes, Stream& stream) {
  SHERD_CHECK(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, cuda(stream)));
}

void call_host_cuda(void (*work)(void*), void* argument, Stream& stream) {
  SHERD_CHECK(cudaLaunchHostFunc(cuda(stream), work, argument));
}

}  // namespace sherd
