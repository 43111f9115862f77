#include "collectives/nccl_check.h"

#include "core/error.h"

namespace sherd {

void check(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw ApiError("NCCL", static_cast<int>(result), ncclGetErrorString(result), call, file, line);
}

}  // namespace sherd
