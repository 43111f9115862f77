#pragma once

#include <nccl.h>

namespace sherd {

/// Throws ApiError unless the call succeeded or, on a communicator that does not block, is under
/// way.
void check(ncclResult_t result, const char* call, const char* file = __builtin_FILE(),
           int line = __builtin_LINE());

}  // namespace sherd
