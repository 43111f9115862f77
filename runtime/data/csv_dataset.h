#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// Tables of comma-separated numbers, a sample a row: one column is the label, the others are the
/// features in their order. Read whole, and checked, when it is opened: DataErrors name file, line
/// and column.
///
/// The first line of each file is a header if `label_column` is given, which it must then name;
/// else the label is the last column, and the first line a header if its last field is no number.
class CsvDataset final : public Dataset {
 public:
  CsvDataset(const std::vector<std::string>& paths, const std::string& label_column,
             const SampleSpec& sample);

  SampleLayout layout() const override { return {DType::f32, sample_.features, 1}; }
  std::vector<std::int64_t> samples_per_file() const override { return rows_per_file_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::string description() const override;

 private:
  struct Columns;
  void load(const std::string& path, const std::string& label_column);
  void add_row(const Columns& columns, const std::vector<std::string>& fields, std::int64_t line);

  SampleSpec sample_;
  std::vector<float> features_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int64_t> rows_per_file_;
};

}  // namespace sherd
