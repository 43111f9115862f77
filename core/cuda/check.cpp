#include "core/cuda/check.h"

#include "core/error.h"

namespace sherd {

void check(cudaError_t result, const char* call, const char* file, int line) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // clears it, so that the next check does not report this one again
  throw ApiError("CUDA", static_cast<int>(result), cudaGetErrorString(result), call, file, line);
}

void check_launch(const char* kernel, const char* file, int line) {
  check(cudaGetLastError(), kernel, file, line);
}

}  // namespace sherd
