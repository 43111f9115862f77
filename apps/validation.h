#pragma once

#include <cstdint>
#include <optional>

#include "core/buffer.h"
#include "runtime/config/run_config.h"
#include "runtime/data/micro_batch_reader.h"
#include "runtime/data/sample_set.h"
#include "runtime/engine.h"

namespace sherd {

/// What a validation found.
struct ValidationResult {
  double loss = 0.0;               ///< mean over the labels
  std::optional<double> accuracy;  ///< labels guessed right of all, where samples have one
};

/// Validates on all of a set, or on some of it: its first samples, or a draw of samples with a
/// label each, the same every time. What it finds does not depend on the ranks: losses and guesses
/// are summed, and those without samples take part.
class Validation {
 public:
  /// `samples` outlives it; may be empty. `sample` is what the model takes.
  Validation(const RunConfig& run, const SampleSet& samples, const SampleSpec& sample, int rank,
             int world);

  /// Whether the run is to be validated after step `step` (from 1).
  bool is_due(std::int64_t step, bool last) const;
  /// Collective.
  ValidationResult measure(Engine& engine);

 private:
  std::int64_t micro_samples_;
  std::int64_t samples_;
  std::int64_t every_;
  bool classifies_;
  int rank_;
  int world_;
  HostMemory memory_;
  std::optional<MicroBatchReader> reader_;
};

}  // namespace sherd
