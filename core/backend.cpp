#include "core/backend.h"

#include <unistd.h>

#include <cstring>

#include "core/cpu_stream.h"
#include "core/cuda_backend.h"
#include "core/error.h"

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

void pause(int microseconds, Stream& stream) {
  if (!stream.device().is_cpu()) return pause_cuda(microseconds, stream);
  enqueue(stream, [microseconds] { usleep(static_cast<unsigned>(microseconds)); });
}

std::unique_ptr<Recording> record_streams(std::span<Stream* const> streams,
                                          const std::function<void()>& enqueue) {
  for (const Stream* stream : streams) {
    require(!stream->device().is_cpu(), "only CUDA streams can be recorded");
  }
  return record_cuda_streams(streams, enqueue);
}

}  // namespace sherd
