#include "kernels/cross_entropy_plan.h"

namespace sherd {
namespace {

constexpr std::int64_t kPackBytes = 16;
constexpr int kFewThreads = 512;  // where a multiprocessor has more than one block

std::int64_t share(std::int64_t row_bytes, unsigned parts) {
  const std::int64_t packs = (row_bytes / kPackBytes + parts - 1) / parts;
  return packs * kPackBytes;
}

}  // namespace

CrossEntropyPlan::CrossEntropyPlan(std::int64_t row_bytes, std::int64_t shared_bytes,
                                   unsigned most_blocks) {
  // While one of two blocks on a multiprocessor reads, the other may write.
  const std::int64_t half = shared_bytes / 2;
  while (blocks < most_blocks && share(row_bytes, blocks) > half) blocks *= 2;
  fits = share(row_bytes, blocks) <= shared_bytes;
  if (!fits) blocks = 1;
  block_bytes = share(row_bytes, blocks);
  if (block_bytes > half) threads = kMostThreads;
  while (threads < kFewThreads && threads * kPackBytes < block_bytes) threads *= 2;
}

}  // namespace sherd
