#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "core/handle.h"
#include "core/stream.h"
#include "core/stream_watch.h"

namespace sherd {

void destroy_cuda_event(cudaEvent_t event) noexcept;
void destroy_cuda_stream(cudaStream_t stream) noexcept;
using CudaEventHandle = Handle<cudaEvent_t, &destroy_cuda_event>;
using CudaStreamHandle = Handle<cudaStream_t, &destroy_cuda_stream>;

/// Watches, each once.
using StreamWatches = std::vector<StreamWatch*>;

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(Device device);
  void synchronize() const override;
  cudaEvent_t raw() const { return event_.get(); }

 private:
  friend class CudaStream;
  CudaEventHandle event_;
  StreamWatches watches_;  ///< of the stream that recorded it
};

/// What a library keeps for one stream: its handle, plans, graphs.
class StreamAttachment {
 public:
  StreamAttachment() = default;
  StreamAttachment(const StreamAttachment&) = delete;
  StreamAttachment& operator=(const StreamAttachment&) = delete;
  virtual ~StreamAttachment() = default;
};

/// How long a stream stood waiting is the time between two events.
struct TimedWait {
  CudaEventHandle before;
  CudaEventHandle after;
};
using TimedWaits = std::deque<TimedWait>;

/// A non-blocking CUDA stream. A host thread that waits for one under watch polls: it spins for the
/// first milliseconds, then naps, and throws what a watch has found. Waits are bracketed by timing
/// events, which cost the device about a microsecond each and tell `waited_ms`.
class CudaStream final : public Stream {
 public:
  CudaStream(Device device, std::string name);

  Device device() const override { return device_; }
  std::unique_ptr<Event> make_event() const override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  void synchronize() override;
  double waited_ms() const override { return waited_ms_; }

  cudaStream_t raw() const { return stream_.get(); }
  bool capturing() const;
  /// The waits since the capture began; a graph keeps them for its replays.
  TimedWaits take_captured_waits();
  /// A graph whose `waits` are this stream's has been launched; they outlive the next
  /// synchronize().
  void expect(const TimedWaits& waits);
  /// Lets `watch` look after what is enqueued here, and after what waits for this stream.
  void add_watch(StreamWatch& watch);

  /// Memory that an operation may use until the next one of this stream starts; planned with
  /// everything else and given once.
  void set_scratch(void* data, std::int64_t bytes) override;
  /// Throws ArgumentError that names the operation when there are not so many bytes.
  void* scratch(std::int64_t bytes, const char* operation) const;

  /// The stream's own T, a StreamAttachment: T(*this) at the first call, destroyed with the stream.
  template <class T>
  T& attachment() {
    std::unique_ptr<StreamAttachment>& slot = attachments_[typeid(T)];
    if (slot == nullptr) slot = std::make_unique<T>(*this);
    return static_cast<T&>(*slot);
  }

 private:
  const TimedWait& next_timed_wait(bool captured);
  void collect_waits();

  Device device_;
  std::string name_;
  CudaStreamHandle stream_;
  void* scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
  TimedWaits waits_;  ///< reused; the first used_ have been recorded
  std::size_t used_ = 0;
  TimedWaits captured_waits_;
  std::vector<const TimedWait*> pending_;  ///< recorded since the stream was last empty
  double waited_ms_ = 0.0;
  StreamWatches watches_;
  /// The last member, so that they go before the stream they use.
  std::unordered_map<std::type_index, std::unique_ptr<StreamAttachment>> attachments_;
};

/// The CUDA stream behind `stream`; throws ArgumentError when it is another kind.
CudaStream& cuda_stream(Stream& stream);
cudaStream_t cuda(Stream& stream);

}  // namespace sherd
