#include "apps/bench_way.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "collectives/nccl.h"
#include "kernels/random_fill.h"
#include "runtime/shard_layout.h"

namespace sherd {
namespace {

/// As training cuts buffers.
std::vector<Shard> cut_evenly(std::int64_t numel, int ranks) {
  constexpr std::int64_t kGranularity = 64;
  const std::vector<double> even(static_cast<std::size_t>(ranks), 1.0);
  return cut_by_weights(numel, even, kGranularity);
}

std::int64_t largest_share(std::int64_t bytes, DType sent, int ranks) {
  std::int64_t numel = 0;
  for (const Shard& shard : cut_evenly(bytes / size_of(sent), ranks)) {
    numel = std::max(numel, shard.numel);
  }
  return numel;
}

/// GPUs take work faster than hosts hand it over only when it is large: small operations are timed
/// many at once. On CPUs an operation is over when the host has seen it.
int operations_at_once(Device device, std::int64_t bytes) {
  constexpr std::int64_t kTogether = std::int64_t{2} << 30;
  constexpr std::int64_t kMost = 64;
  if (device.is_cpu()) return 1;
  return static_cast<int>(std::clamp<std::int64_t>(kTogether / bytes, 2, kMost));
}

}  // namespace

BenchWay::BenchWay(std::string name, std::unique_ptr<Communicator> ranks,
                   std::int64_t largest_bytes, DType sent, DType summed)
    : name_(std::move(name)),
      ranks_(std::move(ranks)),
      sent_(sent),
      summed_(summed),
      whole_(ranks_->memory(), largest_bytes),
      own_(ranks_->memory(),
           aligned(largest_share(largest_bytes, sent, ranks_->size()) * size_of(summed))),
      scratch_memory_(make_device_memory(ranks_->device())),
      stream_(make_stream(ranks_->device(), "bench")) {
  fill_random(whole_.tensor(sent, {whole_.size_bytes() / size_of(sent)}), *stream_);
  fill_random(own_.tensor(sent, {own_.size_bytes() / size_of(sent)}), *stream_);
  stream_->synchronize();
  if (ranks_->device().is_cpu()) return;
  scratch_ = Buffer(*scratch_memory_,
                    aligned(nccl_scratch_bytes(largest_share(largest_bytes, sent, ranks_->size()),
                                               ranks_->size())));
  stream_->set_scratch(scratch_.data(), scratch_.size_bytes());
}

std::int64_t BenchWay::place(const Buffer& buffer, std::int64_t bytes, std::int64_t turn) {
  const std::int64_t stride = std::max(aligned(bytes), kAlignmentBytes);
  const std::int64_t places = std::max<std::int64_t>(1, buffer.size_bytes() / stride);
  return turn % places * stride;
}

double BenchWay::time_ms(bool gather, std::int64_t bytes) {
  const std::int64_t numel = bytes / size_of(sent_);
  const std::vector<Shard> shards = cut_evenly(numel, ranks_->size());
  const std::int64_t share = shards[static_cast<std::size_t>(ranks_->rank())].numel;
  const std::int64_t largest = largest_share(bytes, sent_, ranks_->size());
  const int count = operations_at_once(stream_->device(), bytes);
  ranks_->barrier(*stream_);
  stream_->synchronize();
  const auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i, ++turn_) {
    const Tensor whole = whole_.tensor(sent_, {numel}, place(whole_, bytes, turn_));
    // Ranks' shares may differ in size, their places may not.
    const std::int64_t at = place(own_, largest * size_of(summed_), turn_);
    if (gather) {
      ranks_->all_gather(own_.tensor(sent_, {share}, at), whole, shards, *stream_);
    } else {
      ranks_->reduce_scatter(whole, own_.tensor(summed_, {share}, at), shards, *stream_);
    }
  }
  stream_->synchronize();
  const std::chrono::duration<double, std::milli> passed =
      std::chrono::steady_clock::now() - started;
  return passed.count() / count;
}

}  // namespace sherd
