#include "runtime/data/npy_dataset.h"

#include <algorithm>

#include "core/counted.h"
#include "core/error.h"
#include "runtime/data/checked_values.h"

namespace sherd {

std::int32_t NpyDataset::Part::label(std::int64_t row, std::int64_t range) const {
  const NpyFile& file = labels ? *labels : features;
  const std::int64_t column = labels ? 0 : features.row_numel() - 1;
  return checked_label(file.value(row, column), range,
                       [&] { return fmt::format("{}: row {}", file.path(), row); });
}

NpyDataset::NpyDataset(const std::vector<std::string>& feature_paths,
                       const std::vector<std::string>& label_paths, const SampleSpec& sample)
    : sample_(sample) {
  if (!label_paths.empty() && label_paths.size() != feature_paths.size()) {
    throw DataError(fmt::format(
        "{} files of features, {} and others, but {} of labels, {} and others",
        feature_paths.size(), feature_paths.front(), label_paths.size(), label_paths.front()));
  }
  std::int64_t end = 0;
  for (std::size_t i = 0; i < feature_paths.size(); ++i) {
    Part part{NpyFile(feature_paths[i]), {}};
    if (!label_paths.empty()) part.labels.emplace(label_paths[i]);
    check(part);
    ends_.push_back(end += part.features.rows());
    parts_.push_back(std::move(part));
  }
}

void NpyDataset::check(const Part& part) const {
  const NpyFile& x = part.features;
  const std::int64_t wanted = part.labels ? sample_.features : sample_.features + 1;
  if (x.rows() == 0) throw DataError(fmt::format("{} has no rows", x.path()));
  if (x.row_numel() != wanted) {
    throw DataError(fmt::format("{}: shape ({}) has {} numbers a row; the model takes {}{}",
                                x.path(), fmt::join(x.shape(), ", "), x.row_numel(), wanted,
                                part.labels ? " features" : ", its features and the label"));
  }
  if (part.labels && (part.labels->rows() != x.rows() || part.labels->row_numel() != 1)) {
    throw DataError(fmt::format(
        "{}: shape ({}) does not hold a label for each of the {} rows of {}", part.labels->path(),
        fmt::join(part.labels->shape(), ", "), x.rows(), x.path()));
  }
  for (std::int64_t row = 0; row < x.rows(); ++row) part.label(row, sample_.label_range);
}

std::vector<std::int64_t> NpyDataset::samples_per_file() const {
  std::vector<std::int64_t> counts;
  for (const Part& part : parts_) counts.push_back(part.features.rows());
  return counts;
}

void NpyDataset::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  require(index >= 0 && index < size(), "sample {} was asked for of {}", index, size());
  const auto p = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
  const Part& part = parts_[static_cast<std::size_t>(p)];
  const std::int64_t row = index - (p == 0 ? 0 : ends_[static_cast<std::size_t>(p - 1)]);
  part.features.require_whole();
  if (part.labels) part.labels->require_whole();
  float* out = inputs.as<float>();
  for (std::int64_t column = 0; column < sample_.features; ++column) {
    out[column] = checked_feature(part.features.value(row, column), [&] {
      return fmt::format("{}: row {}, column {}", part.features.path(), row, column);
    });
  }
  *labels.as<std::int32_t>() = part.label(row, sample_.label_range);
}

std::string NpyDataset::description() const {
  return fmt::format("{}, {} of {}", counted(std::ssize(parts_), "file"), counted(size(), "row"),
                     counted(sample_.features, "feature"));
}

}  // namespace sherd
