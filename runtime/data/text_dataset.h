#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/data_config.h"
#include "runtime/data/dataset.h"
#include "runtime/data/label_names.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// Labelled texts, each a sample: kTextStart and its bytes, cut or padded to the sequence length.
/// Read whole, and checked, when it is opened; labelled_text.h has what files hold.
class TextDataset final : public Dataset {
 public:
  /// `config` names the columns and the labels; a label that is none of these is a DataError.
  TextDataset(const std::vector<std::string>& paths, const DataConfig& config,
              const SampleSpec& sample);

  SampleLayout layout() const override { return {DType::i32, sequence_, 1, /*padded=*/true}; }
  std::vector<std::int64_t> samples_per_file() const override { return texts_per_file_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::int64_t valid_inputs(std::int64_t index) const override;
  std::string description() const override;

 private:
  void add(const LabelledText& sample, const std::string& path);
  /// Where the bytes of a text begin; they end at ends_[text].
  std::int64_t begin_of(std::size_t text) const { return text == 0 ? 0 : ends_[text - 1]; }
  std::size_t checked(std::int64_t index) const;

  std::int64_t sequence_;
  std::int32_t padding_;
  LabelNames names_;
  std::string bytes_;  // of all texts, as far as samples hold them
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> labels_;
  std::vector<std::int64_t> texts_per_file_;
  std::int64_t cut_ = 0;  // texts that are longer than a sample
};

}  // namespace sherd
