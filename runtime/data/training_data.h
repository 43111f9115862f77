#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/data/data_config.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_set.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// The data of a run, opened and checked: what is trained on and what is validated with. The
/// validation set comes from its own files, or is split off, or is empty.
class TrainingData {
 public:
  /// Throws ArgumentError when the configuration does not fit the model, DataError when the files
  /// are not what they should be. `seed` makes synthetic data.
  TrainingData(const DataConfig& config, const SampleSpec& sample, std::uint64_t seed);

  /// Valid as long as this lives.
  const SampleSet& train() const { return train_; }
  const SampleSet& validation() const { return validation_; }
  /// For people, one line.
  std::string description() const;

 private:
  std::unique_ptr<Dataset> train_files_;
  std::unique_ptr<Dataset> validation_files_;  // null when split off
  SampleSet train_;
  SampleSet validation_;
};

}  // namespace sherd
