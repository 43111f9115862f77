#include "core/backend.h"

#include <cstring>

#include "core/cpu_stream.h"
#include "core/error.h"

namespace sherd {

std::unique_ptr<Stream> make_stream(Device device, const std::string& name, int threads) {
  require(device.is_cpu(), "this build has no {} backend", name_of(device));
  return std::make_unique<CpuStream>(name, threads);
}

std::unique_ptr<Memory> make_host_memory(Device device) {
  require(device.is_cpu(), "this build has no {} backend", name_of(device));
  return std::make_unique<HostMemory>();
}

void copy_bytes(const void* from, void* to, std::int64_t bytes, Stream& stream) {
  if (bytes == 0 || from == to) return;
  enqueue(stream, [=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
}

}  // namespace sherd
