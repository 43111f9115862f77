#include "core/cuda/timing.h"

#include "core/cuda/check.h"

namespace sherd {

CudaEventHandle make_timing_event() {
  cudaEvent_t event = nullptr;
  SHERD_CHECK(cudaEventCreate(&event));
  return CudaEventHandle(event);
}

double elapsed_ms(const CudaEventHandle& before, const CudaEventHandle& after) {
  float ms = 0.0f;
  SHERD_CHECK(cudaEventElapsedTime(&ms, before.get(), after.get()));
  return static_cast<double>(ms);
}

double device_ms(CudaStream& stream, const std::function<void()>& enqueue) {
  const CudaEventHandle before = make_timing_event();
  const CudaEventHandle after = make_timing_event();
  SHERD_CHECK(cudaEventRecord(before.get(), stream.raw()));
  enqueue();
  SHERD_CHECK(cudaEventRecord(after.get(), stream.raw()));
  stream.synchronize();
  return elapsed_ms(before, after);
}

}  // namespace sherd
