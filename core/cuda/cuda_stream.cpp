#include "core/cuda/cuda_stream.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/cuda/report.h"
#include "core/cuda/timing.h"
#include "core/error.h"

namespace sherd {
namespace {

void add_once(StreamWatches& watches, StreamWatch* watch) {
  if (std::find(watches.begin(), watches.end(), watch) == watches.end()) watches.push_back(watch);
}

/// Tells the watches that this thread waits, as long as it does.
class HostWait {
 public:
  HostWait(const StreamWatches& watches, const std::string& name, const WorkLabel& label)
      : watches_(watches) {
    for (StreamWatch* watch : watches_) watch->start_wait(name, label);
  }
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;
  ~HostWait() {
    for (StreamWatch* watch : watches_) watch->end_wait();
  }

  /// Returns once `query` no longer says "not ready". What an operation of a failed communicator
  /// left behind must not be used, so the watches are asked at the end too.
  template <class Query>
  void until(Query query) const {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kSpinTime{3};
    constexpr std::chrono::microseconds kNap{50};
    const auto start = Clock::now();
    check_watches();  // calls may stand behind what ends a failed communicator
    cudaError_t state = query();
    while (state == cudaErrorNotReady) {
      cudaGetLastError();
      check_watches();
      if (Clock::now() - start > kSpinTime) std::this_thread::sleep_for(kNap);
      state = query();
    }
    check_watches();
    SHERD_CHECK(state);
  }

 private:
  void check_watches() const {
    for (StreamWatch* watch : watches_) watch->check();
  }
  const StreamWatches& watches_;
};

}  // namespace

void destroy_cuda_event(cudaEvent_t event) noexcept {
  report_failure("cudaEventDestroy", cudaEventDestroy(event));
}

void destroy_cuda_stream(cudaStream_t stream) noexcept {
  report_failure("cudaStreamDestroy", cudaStreamDestroy(stream));
}

CudaEvent::CudaEvent(Device device) {
  const DeviceGuard guard(device);
  cudaEvent_t event = nullptr;
  SHERD_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  event_ = CudaEventHandle(event);
}

void CudaEvent::synchronize() const {
  if (watches_.empty()) return SHERD_CHECK(cudaEventSynchronize(event_.get()));
  const HostWait wait(watches_, "an event", {});
  wait.until([this] { return cudaEventQuery(event_.get()); });
}

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

void CudaStream::add_watch(StreamWatch& watch) { add_once(watches_, &watch); }

void CudaStream::record(Event& event) {
  auto& recorded = dynamic_cast<CudaEvent&>(event);
  SHERD_CHECK(cudaEventRecord(recorded.raw(), stream_.get()));
  recorded.watches_ = watches_;
}

void CudaStream::wait(const Event& event) {
  const auto& waited_for = dynamic_cast<const CudaEvent&>(event);
  const cudaEvent_t awaited = waited_for.raw();
  for (StreamWatch* watch : waited_for.watches_) add_once(watches_, watch);
  const bool captured = capturing();
  const TimedWait& timed = next_timed_wait(captured);
  const unsigned flags = captured ? cudaEventRecordExternal : cudaEventRecordDefault;
  SHERD_CHECK(cudaEventRecordWithFlags(timed.before.get(), stream_.get(), flags));
  SHERD_CHECK(cudaStreamWaitEvent(stream_.get(), awaited, 0));
  SHERD_CHECK(cudaEventRecordWithFlags(timed.after.get(), stream_.get(), flags));
}

const TimedWait& CudaStream::next_timed_wait(bool captured) {
  const DeviceGuard guard(device_);
  if (captured) {
    captured_waits_.push_back({make_timing_event(), make_timing_event()});
    return captured_waits_.back();
  }
  if (used_ == waits_.size()) waits_.push_back({make_timing_event(), make_timing_event()});
  pending_.push_back(&waits_[used_]);
  return waits_[used_++];
}

TimedWaits CudaStream::take_captured_waits() { return std::exchange(captured_waits_, {}); }

void CudaStream::expect(const TimedWaits& waits) {
  for (const TimedWait& wait : waits) pending_.push_back(&wait);
}

void CudaStream::synchronize() {
  if (watches_.empty()) {
    SHERD_CHECK(cudaStreamSynchronize(stream_.get()));
  } else {
    const HostWait wait(watches_, name_, label());
    wait.until([this] { return cudaStreamQuery(stream_.get()); });
  }
  collect_waits();
}

void CudaStream::collect_waits() {
  for (const TimedWait* wait : pending_) {
    waited_ms_ += elapsed_ms(wait->before, wait->after);
  }
  pending_.clear();
  used_ = 0;
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
