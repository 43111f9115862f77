#pragma once

#include <cstdint>
#include <vector>

#include "core/shard.h"
#include "runtime/data/dataset.h"

namespace sherd {

/// Some samples of a data set, numbered from 0 without gaps: what is trained on, or validated with.
class SampleSet {
 public:
  /// No samples.
  SampleSet() = default;
  /// The samples in `ranges`, in their order; `dataset` must outlive the set.
  SampleSet(const Dataset& dataset, std::vector<Shard> ranges);

  std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  bool empty() const { return size() == 0; }
  /// Only of a set that is not empty.
  SampleLayout layout() const { return dataset_->layout(); }
  /// Index in the data set of sample `number` < size().
  std::int64_t index_of(std::int64_t number) const;
  /// As Dataset::read.
  void read(std::int64_t number, const Tensor& inputs, const Tensor& labels) const;
  std::int64_t valid_inputs(std::int64_t number) const;

 private:
  const Dataset* dataset_ = nullptr;
  std::vector<Shard> ranges_;
  std::vector<std::int64_t> ends_;
};

struct SampleSplit {
  SampleSet train;
  SampleSet validation;
};

/// All samples of a data set.
SampleSet all_samples(const Dataset& dataset);
/// Which samples of a data set are held out.
enum class HeldOut {
  ends,  ///< the last of each file, its share to within one sample: no window of training text lies
         ///< between two of validation
  spread,  ///< a pseudo-random choice, the same for every run: files may be sorted by label
};
/// floor(fraction * size) samples become the validation set, and at least one stays to train on.
/// Throws ArgumentError for a fraction outside [0, 1), and for one above 0 that holds out no
/// sample.
SampleSplit split_samples(const Dataset& dataset, double validation_fraction,
                          HeldOut held_out = HeldOut::ends);

}  // namespace sherd
