#include <cstdint>
#include <vector>

#include "core/backend.h"
#include "core/error.h"
#include "runtime/engine.h"
#include "runtime/executor.h"
#include "runtime/io/digest.h"
#include "runtime/plan_regions.h"

namespace sherd {

/// Of what this rank holds of the parameters and their masters.
std::uint64_t Engine::digest_parameters() {
  const std::unique_ptr<Memory> host_memory = make_host_memory(world_.memory().device());
  Stream& stream = executor_->stream(Lane::compute);
  std::uint64_t sum = 0;
  for (int b = 0; b < static_cast<int>(layout_.buffers().size()); ++b) {
    const MasterParameters held = executor_->master(b);
    for (const Tensor& tensor : {held.value, held.master}) {
      if (tensor.numel() == 0) continue;
      const Buffer host(*host_memory, tensor.size_bytes());
      copy_bytes(tensor.data(), host.data(), tensor.size_bytes(), stream);
      stream.synchronize();
      sum = digest(host.data(), tensor.size_bytes(), sum);
    }
  }
  return sum;
}

void Engine::check_replicas() {
  const int size = world_.size();
  // Rank r holds what rank r % holders holds.
  const int holders = shards_optimizer(options_.plan) ? options_.plan.group_size : 1;
  if (holders == size) return;
  std::vector<std::int64_t> digests(static_cast<std::size_t>(size), 0);
  digests[static_cast<std::size_t>(world_.rank())] = static_cast<std::int64_t>(digest_parameters());
  executor_->agree(digests, ReduceOp::sum);
  for (int r = holders; r < size; ++r) {
    const int other = r % holders;
    if (digests[static_cast<std::size_t>(r)] == digests[static_cast<std::size_t>(other)]) continue;
    throw Error(ExitCode::failure,
                fmt::format("ranks {} and {} are replicas, but after {} steps their parameters "
                            "differ: a rank computes wrongly, or its memory is damaged",
                            other, r, steps_));
  }
}

}  // namespace sherd
