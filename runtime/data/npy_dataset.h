#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// Features and their labels in NPY arrays, a sample per entry of the first dimension. With a
/// second file the labels are that array, [N] or [N, 1], and the features all of the first array,
/// whose further dimensions are flattened; without, the first array is [N, F + 1] and its last
/// column the label. Labels are checked when opened, features when read: DataErrors name file, row
/// and column, from 0 as NumPy counts.
class NpyDataset final : public Dataset {
 public:
  /// `label_paths` is empty or as long as `feature_paths`.
  NpyDataset(const std::vector<std::string>& feature_paths,
             const std::vector<std::string>& label_paths, const SampleSpec& sample);

  SampleLayout layout() const override { return {DType::f32, sample_.features, 1}; }
  std::vector<std::int64_t> samples_per_file() const override;
  std::int64_t size() const override { return ends_.back(); }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::string description() const override;

 private:
  /// The arrays of one pair of files.
  struct Part {
    NpyFile features;
    std::optional<NpyFile> labels;
    std::int32_t label(std::int64_t row, std::int64_t range) const;
  };
  void check(const Part& part) const;

  SampleSpec sample_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> ends_;
};

}  // namespace sherd
