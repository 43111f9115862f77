#include "core/backend.h"

#include <unistd.h>

#include <atomic>
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

void mark(std::uint32_t* word, std::uint32_t value, Stream& stream) {
  if (!stream.device().is_cpu()) return mark_cuda(word, value, stream);
  enqueue(stream, [=] { std::atomic_ref(*word).store(value, std::memory_order_release); });
}

void call_host(void (*work)(void*), void* argument, Stream& stream) {
  if (!stream.device().is_cpu()) return call_host_cuda(work, argument, stream);
  enqueue(stream, [=] { work(argument); });
}

void pause(int microseconds, Stream& stream) {
  // The number travels as the pointer: nothing has to outlive the call.
  const auto sleep = [](void* number) {
    usleep(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(number)));
  };
  const auto number = static_cast<std::uintptr_t>(microseconds);
  call_host(sleep, reinterpret_cast<void*>(number), stream);
}

std::unique_ptr<Recording> record_streams(std::span<Stream* const> streams,
                                          const std::function<void()>& enqueue) {
  for (const Stream* stream : streams) {
    require(!stream->device().is_cpu(), "only CUDA streams can be recorded");
  }
  return record_cuda_streams(streams, enqueue);
}

}  // namespace sherd
