#include "runtime/step_batches.h"

namespace sherd {

MicroBatch as_micro_batch(const HostBatch& batch, std::int64_t first_sample) {
  return {.inputs = batch.inputs,
          .labels = batch.labels,
          .mask = batch.mask,
          .first_sample = first_sample};
}

StepBatches::StepBatches(const RunConfig& run, const SampleSet& samples, int rank, int world)
    : cut_(micro_batches_of(run, world)), own_(cut_.ranks[static_cast<std::size_t>(rank)]) {
  if (own_.count == 0) return;
  reader_.emplace(samples, SampleOrder(samples.size(), run.data.shuffle, run.seed), memory_,
                  cut_.largest_of_rank(rank), static_cast<int>(own_.count));
}

std::span<const MicroBatch> StepBatches::read(std::int64_t step) {
  batches_.clear();
  for (int i = 0; i < own_.count; ++i) {
    const std::int64_t first = cut_.first_sample(own_.first + i);
    const HostBatch batch =
        reader_->read(i, step * cut_.train + first, cut_.samples(own_.first + i));
    batches_.push_back(as_micro_batch(batch, first));
  }
  return batches_;
}

}  // namespace sherd
