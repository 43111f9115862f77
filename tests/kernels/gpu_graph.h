#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/handle.h"
#include "core/stream.h"

namespace sherd::test {

inline void destroy_graph(cudaGraph_t graph) noexcept { cudaGraphDestroy(graph); }
inline void destroy_executable(cudaGraphExec_t executable) noexcept {
  cudaGraphExecDestroy(executable);
}
using Graph = Handle<cudaGraph_t, &destroy_graph>;
using Executable = Handle<cudaGraphExec_t, &destroy_executable>;

/// What f enqueues, as a graph that runs it again. Ends the capture also when f throws.
template <class F>
Executable capture(Stream& stream, F f) {
  SHERD_CHECK(cudaStreamBeginCapture(cuda(stream), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t raw = nullptr;
  try {
    f();
  } catch (...) {
    cudaStreamEndCapture(cuda(stream), &raw);
    const Graph unfinished(raw);
    throw;
  }
  SHERD_CHECK(cudaStreamEndCapture(cuda(stream), &raw));
  const Graph graph(raw);
  cudaGraphExec_t executable = nullptr;
  SHERD_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
  return Executable(executable);
}

}  // namespace sherd::test
