#include "core/cuda/cuda_stream.h"

#include <cstdio>
#include <utility>

#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/error.h"

namespace sherd {
namespace {

void report(const char* what, cudaError_t result) noexcept {
  // While the process ends, the driver may go first: that is not a failure.
  if (result == cudaSuccess || result == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "warning: %s: %s\n", what, cudaGetErrorString(result));
}

CudaEventHandle make_timing_event() {
  cudaEvent_t event = nullptr;
  SHERD_CHECK(cudaEventCreate(&event));
  return CudaEventHandle(event);
}

}  // namespace

void destroy_cuda_event(cudaEvent_t event) noexcept {
  report("cudaEventDestroy", cudaEventDestroy(event));
}

void destroy_cuda_stream(cudaStream_t stream) noexcept {
  report("cudaStreamDestroy", cudaStreamDestroy(stream));
}

CudaEvent::CudaEvent(Device device) {
  const DeviceGuard guard(device);
  cudaEvent_t event = nullptr;
  SHERD_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  event_ = CudaEventHandle(event);
}

void CudaEvent::synchronize() const { SHERD_CHECK(cudaEventSynchronize(event_.get())); }

CudaStream::CudaStream(Device device, std::string name) : device_(device), name_(std::move(name)) {
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  SHERD_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_ = CudaStreamHandle(stream);
}

std::unique_ptr<Event> CudaStream::make_event() const {
  return std::make_unique<CudaEvent>(device_);
}

bool CudaStream::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  SHERD_CHECK(cudaStreamIsCapturing(stream_.get(), &status));
  return status != cudaStreamCaptureStatusNone;
}

void CudaStream::record(Event& event) {
  SHERD_CHECK(cudaEventRecord(dynamic_cast<CudaEvent&>(event).raw(), stream_.get()));
}

void CudaStream::wait(const Event& event) {
  const cudaEvent_t awaited = dynamic_cast<const CudaEvent&>(event).raw();
  if (capturing()) {
    SHERD_CHECK(cudaStreamWaitEvent(stream_.get(), awaited, 0));
    return;
  }
  if (pending_ == waits_.size()) {
    const DeviceGuard guard(device_);
    waits_.push_back({make_timing_event(), make_timing_event()});
  }
  const TimedWait& timed = waits_[pending_++];
  SHERD_CHECK(cudaEventRecord(timed.before.get(), stream_.get()));
  SHERD_CHECK(cudaStreamWaitEvent(stream_.get(), awaited, 0));
  SHERD_CHECK(cudaEventRecord(timed.after.get(), stream_.get()));
}

void CudaStream::synchronize() {
  SHERD_CHECK(cudaStreamSynchronize(stream_.get()));
  collect_waits();
}

void CudaStream::collect_waits() {
  for (std::size_t i = 0; i < pending_; ++i) {
    float ms = 0.0f;
    SHERD_CHECK(cudaEventElapsedTime(&ms, waits_[i].before.get(), waits_[i].after.get()));
    waited_ms_ += static_cast<double>(ms);
  }
  pending_ = 0;
}

void CudaStream::set_scratch(void* data, std::int64_t bytes) {
  scratch_ = data;
  scratch_bytes_ = bytes;
}

void* CudaStream::scratch(std::int64_t bytes, const char* operation) const {
  require(bytes <= scratch_bytes_, "{} needs {} bytes of scratch, the {} stream has {}", operation,
          bytes, name_, scratch_bytes_);
  return scratch_;
}

CudaStream& cuda_stream(Stream& stream) {
  auto* found = dynamic_cast<CudaStream*>(&stream);
  require(found != nullptr, "a CUDA operation needs a CUDA stream, got one on {}",
          name_of(stream.device()));
  return *found;
}

cudaStream_t cuda(Stream& stream) { return cuda_stream(stream).raw(); }

}  // namespace sherd
