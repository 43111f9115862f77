#include "core/cuda/report.h"

#include <cstdio>

namespace sherd {

void report_failure(const char* call, cudaError_t result) noexcept {
  // While the process ends, the driver may go first: that is not a failure.
  if (result == cudaSuccess || result == cudaErrorCudartUnloading) return;
  std::fprintf(stderr, "warning: %s: %s\n", call, cudaGetErrorString(result));
}

}  // namespace sherd
