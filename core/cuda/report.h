#pragma once

#include <cuda_runtime_api.h>

namespace sherd {

/// What destructors do with the result of `call`: a warning when it failed, and no exception.
void report_failure(const char* call, cudaError_t result) noexcept;

}  // namespace sherd
