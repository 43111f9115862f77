#include "apps/validation.h"

#include <algorithm>

#include "runtime/config/batch.h"
#include "runtime/step_batches.h"

namespace sherd {
namespace {

/// Samples that every rank has planned for.
std::int64_t smallest_plan(const MicroBatchCut& cut, int world) {
  std::int64_t smallest = cut.largest_of_rank(0);
  for (int rank = 1; rank < world; ++rank) {
    smallest = std::min(smallest, cut.largest_of_rank(rank));
  }
  return smallest;
}

}  // namespace

Validation::Validation(const RunConfig& run, const SampleSet& samples, const SampleSpec& sample,
                       int rank, int world)
    : micro_samples_(smallest_plan(micro_batches_of(run, world), world)),
      samples_(samples.size()),
      every_(run.validate_every),
      classifies_(!sample.label_per_token),
      rank_(rank),
      world_(world) {
  if (samples.empty()) return;
  if (run.validation_batches > 0) {
    samples_ = std::min(samples_, run.validation_batches * run.batch.train);
  }
  // The first samples of a table may all have one label: where not all are read, they are drawn.
  const bool draws = classifies_ && samples_ < samples.size();
  reader_.emplace(samples, SampleOrder(samples.size(), draws, run.seed), memory_, micro_samples_);
}

bool Validation::is_due(std::int64_t step, bool last) const {
  return samples_ > 0 && (last || (every_ > 0 && step % every_ == 0));
}

ValidationResult Validation::measure(Engine& engine) {
  double sum = 0.0;
  std::int64_t labels = 0;
  std::int64_t correct = 0;
  const std::int64_t round = micro_samples_ * world_;
  for (std::int64_t begin = 0; begin < samples_; begin += round) {
    const std::int64_t first = std::min(begin + rank_ * micro_samples_, samples_);
    const std::int64_t count = std::min(micro_samples_, samples_ - first);
    const MicroBatch micro = as_micro_batch(reader_->read(0, first, count), first);
    const Evaluation part = engine.evaluate({&micro, count > 0 ? std::size_t{1} : 0});
    sum += part.loss * static_cast<double>(part.labels);
    labels += part.labels;
    correct += part.correct;
  }
  if (labels == 0) return {};
  const auto all = static_cast<double>(labels);
  ValidationResult result{sum / all, {}};
  if (classifies_) result.accuracy = static_cast<double>(correct) / all;
  return result;
}

}  // namespace sherd
