#pragma once

#include <cuda_runtime_api.h>

/// Checks the result of a library call; overloads of sherd::check say what failure means.
#define SHERD_CHECK(call) ::sherd::check((call), #call)

namespace sherd {

/// Throws ApiError with the call's text and place, after clearing CUDA's sticky error.
void check(cudaError_t result, const char* call, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());
/// The last line of every launcher: throws when the launch was refused.
void check_launch(const char* kernel, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());

}  // namespace sherd
