#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/handle.h"
#include "core/stream.h"

namespace sherd {

void destroy_cuda_event(cudaEvent_t event) noexcept;
void destroy_cuda_stream(cudaStream_t stream) noexcept;
using CudaEventHandle = Handle<cudaEvent_t, &destroy_cuda_event>;
using CudaStreamHandle = Handle<cudaStream_t, &destroy_cuda_stream>;

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(Device device);
  void synchronize() const override;
  cudaEvent_t raw() const { return event_.get(); }

 private:
  CudaEventHandle event_;
};

/// A non-blocking CUDA stream. Waits are bracketed by timing events (unless the stream is being
/// captured), which cost the device about a microsecond each and tell `waited_ms`.
class CudaStream final : public Stream {
 public:
  CudaStream(Device device, std::string name);
  ~CudaStream() override = default;

  Device device() const override { return device_; }
  std::unique_ptr<Event> make_event() const override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  double waited_ms() const override { return waited_ms_; }

  cudaStream_t raw() const { return stream_.get(); }
  bool capturing() const;

 private:
  struct TimedWait {
    CudaEventHandle before;
    CudaEventHandle after;
  };
  void collect_waits();

  Device device_;
  std::string name_;
  CudaStreamHandle stream_;
  std::vector<TimedWait> waits_;  ///< reused; the first pending_ have been recorded
  std::size_t pending_ = 0;
  double waited_ms_ = 0.0;
};

/// The CUDA stream behind `stream`; throws ArgumentError when it is another kind.
cudaStream_t cuda(Stream& stream);

}  // namespace sherd
