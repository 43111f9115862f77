#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/token_file.h"

namespace sherd {

/// Token files as one stream, in the order given, cut into windows: sample i is tokens
/// [i T, (i + 1) T) and its labels are the tokens that follow each. A window may reach over the end
/// of a file; the last token of a file then has no label, so nobody learns to predict another
/// file's first token. Less than a window at the end of the stream is not used.
class TokenDataset final : public Dataset {
 public:
  /// Checks the first and the last token of each file; the others are checked when they are read.
  /// Throws DataError when all files together are too short for one sample.
  TokenDataset(std::vector<TokenFile> files, std::int64_t sequence, std::int64_t vocabulary);

  SampleLayout layout() const override { return {DType::i32, sequence_, sequence_}; }
  std::vector<std::int64_t> samples_per_file() const override;
  std::int64_t size() const override { return (ends_.back() - 1) / sequence_; }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::string description() const override;

 private:
  void copy(std::int64_t position, std::int64_t count, std::int32_t* out) const;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> ends_;  // of each file in the stream
  std::int64_t sequence_;
  std::int64_t vocabulary_;
};

}  // namespace sherd
