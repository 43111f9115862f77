#include <utility>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/cuda/report.h"
#include "core/cuda_backend.h"

namespace sherd {
namespace {

void destroy_graph(cudaGraph_t graph) noexcept {
  report_failure("cudaGraphDestroy", cudaGraphDestroy(graph));
}
void destroy_executable(cudaGraphExec_t executable) noexcept {
  report_failure("cudaGraphExecDestroy", cudaGraphExecDestroy(executable));
}
using GraphHandle = Handle<cudaGraph_t, &destroy_graph>;
using ExecutableHandle = Handle<cudaGraphExec_t, &destroy_executable>;

using Streams = std::vector<CudaStream*>;

/// The first stream begins the capture; the others join it by waiting for it, and must have been
/// waited for by its end.
void fork(const Streams& streams) {
  CudaEvent begun(streams.front()->device());
  streams.front()->record(begun);
  for (std::size_t s = 1; s < streams.size(); ++s) {
    // Not CudaStream::wait, whose first event would be recorded before the stream has joined.
    SHERD_CHECK(cudaStreamWaitEvent(streams[s]->raw(), begun.raw(), 0));
  }
}
void join(const Streams& streams) {
  for (std::size_t s = 1; s < streams.size(); ++s) {
    CudaEvent done(streams[s]->device());
    streams[s]->record(done);
    streams.front()->wait(done);
  }
}

GraphHandle capture(const Streams& streams, const std::function<void()>& enqueue) {
  const cudaStream_t origin = streams.front()->raw();
  // NCCL's own threads launch too, and may do what a capturing thread must not.
  SHERD_CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    fork(streams);
    enqueue();
    join(streams);
  } catch (...) {
    cudaStreamEndCapture(origin, &graph);
    if (graph != nullptr) destroy_graph(graph);
    cudaGetLastError();
    throw;
  }
  SHERD_CHECK(cudaStreamEndCapture(origin, &graph));
  return GraphHandle(graph);
}

class CudaRecording final : public Recording {
 public:
  CudaRecording(Streams streams, const std::function<void()>& enqueue)
      : streams_(std::move(streams)) {
    const DeviceGuard guard(streams_.front()->device());
    const GraphHandle graph = capture(streams_, enqueue);
    for (CudaStream* stream : streams_) waits_.push_back(stream->take_captured_waits());
    cudaGraphExec_t executable = nullptr;
    SHERD_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
    executable_ = ExecutableHandle(executable);
  }

  void replay() override {
    SHERD_CHECK(cudaGraphLaunch(executable_.get(), streams_.front()->raw()));
    for (std::size_t s = 0; s < streams_.size(); ++s) streams_[s]->expect(waits_[s]);
  }

 private:
  Streams streams_;
  std::vector<TimedWaits> waits_;  ///< of each stream
  ExecutableHandle executable_;
};

}  // namespace

std::unique_ptr<Recording> record_cuda_streams(std::span<Stream* const> streams,
                                               const std::function<void()>& enqueue) {
  Streams cuda_streams;
  for (Stream* stream : streams) cuda_streams.push_back(&cuda_stream(*stream));
  return std::make_unique<CudaRecording>(std::move(cuda_streams), enqueue);
}

}  // namespace sherd
