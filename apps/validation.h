#pragma once

#include <cstdint>
#include <optional>

#include "core/buffer.h"
#include "runtime/config/run_config.h"
#include "runtime/data/micro_batch_reader.h"
#include "runtime/data/sample_set.h"
#include "runtime/engine.h"

namespace sherd {

/// The validation loss: the mean over all labels of the set, or of its first samples.
class Validation {
 public:
  /// `samples` outlives it; may be empty.
  Validation(const RunConfig& run, const SampleSet& samples, int rank, int world);

  /// Whether the run is to be validated after step `step` (from 1).
  bool is_due(std::int64_t step, bool last) const;
  /// Collective.
  double loss(Engine& engine);

 private:
  std::int64_t micro_samples_;
  std::int64_t samples_;
  std::int64_t every_;
  int rank_;
  int world_;
  HostMemory memory_;
  std::optional<MicroBatchReader> reader_;
};

}  // namespace sherd
