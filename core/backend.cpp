#include "core/backend.h"

#include <cstring>

#include "core/cpu_stream.h"
#include "core/cuda_backend.h"

namespace sherd {

std::unique_ptr<Stream> make_stream(Device device, const std::string& name, int threads) {
  if (!device.is_cpu()) return make_cuda_stream(device, name);
  return std::make_unique<CpuStream>(name, threads);
}

std::unique_ptr<Memory> make_host_memory(Device device) {
  if (!device.is_cpu()) return make_pinned_memory();
  return std::make_unique<HostMemory>();
}

std::unique_ptr<Memory> make_device_memory(Device device) {
  if (!device.is_cpu()) return make_cuda_memory(device);
  return std::make_unique<HostMemory>();
}

void copy_bytes(const void* from, void* to, std::int64_t bytes, Stream& stream) {
  if (bytes == 0 || from == to) return;
  if (!stream.device().is_cpu()) return copy_bytes_cuda(from, to, bytes, stream);
  enqueue(stream, [=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
}

}  // namespace sherd
