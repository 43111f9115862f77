#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "runtime/config/batch.h"
#include "runtime/config/run_config.h"
#include "runtime/data/micro_batch_reader.h"
#include "runtime/data/sample_set.h"
#include "runtime/engine.h"

namespace sherd {

/// What a reader gave, as an engine takes it; `first_sample` is its place in the step.
MicroBatch as_micro_batch(const HostBatch& batch, std::int64_t first_sample);

/// The micro-batches that a rank has in each step. Which samples a step has, and how they are cut
/// into micro-batches, does not depend on the ranks.
class StepBatches {
 public:
  /// `samples` outlives it.
  StepBatches(const RunConfig& run, const SampleSet& samples, int rank, int world);

  /// Those of step `step`, counted from 0; valid until the next call.
  std::span<const MicroBatch> read(std::int64_t step);

 private:
  MicroBatchCut cut_;
  MicroBatchRange own_;
  HostMemory memory_;
  std::optional<MicroBatchReader> reader_;  // a rank may have no samples
  std::vector<MicroBatch> batches_;
};

}  // namespace sherd
