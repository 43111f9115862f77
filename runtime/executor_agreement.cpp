// What ranks tell each other between steps.

#include <cstring>

#include "runtime/executor.h"

namespace sherd {

void Executor::agree(std::span<std::int64_t> words, ReduceOp op) {
  const auto count = static_cast<std::int64_t>(words.size());
  const Tensor device_words = region(placed_.plan->agreement_region, DType::i64, {count});
  Stream& reduce_lane = stream(Lane::reduce);
  const Buffer host(*host_memory_, device_words.size_bytes());
  std::memcpy(host.data(), words.data(), words.size_bytes());
  attempt([&] {
    copy_bytes(host.data(), device_words.data(), device_words.size_bytes(), reduce_lane);
    world_->all_reduce(device_words, op, reduce_lane);
    copy_bytes(device_words.data(), host.data(), device_words.size_bytes(), reduce_lane);
    reduce_lane.synchronize();
  });
  std::memcpy(words.data(), host.data(), words.size_bytes());
}

Tensor Executor::step_memory() const {
  const std::int64_t first = placed_.memory->persistent_bytes;
  return arena_.tensor(DType::u8, {arena_.size_bytes() - first}, first);
}

}  // namespace sherd
