#include "collectives/nccl.h"
#include "collectives/part_stride.h"
#include "core/dtype.h"

namespace sherd {

// Known without NCCL, so that plans for GPUs can be made anywhere.
std::int64_t nccl_scratch_bytes(std::int64_t shard_numel, int ranks) {
  return part_stride(shard_numel) * ranks * size_of(DType::bf16);
}

}  // namespace sherd
