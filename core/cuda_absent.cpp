#include "core/cuda_backend.h"
#include "core/error.h"
#include "core/trace_range.h"

namespace sherd {
namespace {

[[noreturn]] void no_cuda() {
  throw ArgumentError("this build has no CUDA backend: configure it with a CUDA toolkit on PATH");
}

}  // namespace

int cuda_device_count() { return 0; }
std::string cuda_absence() { return "this build has no CUDA backend"; }
CudaDeviceInfo cuda_device_info(int) { no_cuda(); }
bool cuda_can_access_peer(int, int) { no_cuda(); }
double cuda_copy_rate(int, int) { no_cuda(); }
std::string cuda_versions() { return "none"; }
std::unique_ptr<Stream> make_cuda_stream(Device, const std::string&) { no_cuda(); }
std::unique_ptr<Memory> make_cuda_memory(Device) { no_cuda(); }
std::unique_ptr<Memory> make_pinned_memory() { no_cuda(); }
void copy_bytes_cuda(const void*, void*, std::int64_t, Stream&) { no_cuda(); }
TraceRange::TraceRange(Device, const char*) {}
TraceRange::~TraceRange() = default;
void mark_cuda(std::uint32_t*, std::uint32_t, Stream&) { no_cuda(); }
void call_host_cuda(void (*)(void*), void*, Stream&) { no_cuda(); }
std::unique_ptr<Recording> record_cuda_streams(std::span<Stream* const>,
                                               const std::function<void()>&) {
  no_cuda();
}

}  // namespace sherd
