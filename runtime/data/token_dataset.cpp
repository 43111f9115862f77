#include "runtime/data/token_dataset.h"

#include <algorithm>
#include <utility>

#include "core/counted.h"
#include "core/error.h"
#include "core/label.h"

namespace sherd {

TokenDataset::TokenDataset(std::vector<TokenFile> files, std::int64_t sequence,
                           std::int64_t vocabulary)
    : files_(std::move(files)), sequence_(sequence), vocabulary_(vocabulary) {
  require(!files_.empty() && sequence > 0 && vocabulary > 0,
          "token data needs files, a sequence length and a vocabulary; got {} files, {} and {}",
          files_.size(), sequence, vocabulary);
  std::int64_t end = 0;
  for (const TokenFile& file : files_) {
    std::int32_t token = 0;
    file.read(0, {&token, 1}, vocabulary_);
    file.read(file.size() - 1, {&token, 1}, vocabulary_);
    ends_.push_back(end += file.size());
  }
  if (size() == 0) {
    throw DataError(
        fmt::format("{}: {} tokens are too few for one sample of {} and the label of "
                    "its last token{}",
                    files_.front().path(), end, sequence,
                    end < 2 ? "" : fmt::format("; a sequence may have {}", end - 1)));
  }
}

std::vector<std::int64_t> TokenDataset::samples_per_file() const {
  std::vector<std::int64_t> counts;
  std::int64_t before = 0;
  for (const std::int64_t end : ends_) {
    // Windows that begin before `end`: the count of multiples of T below it, less unusable ones.
    const std::int64_t begun = std::min((end + sequence_ - 1) / sequence_, size());
    counts.push_back(begun - before);
    before = begun;
  }
  return counts;
}

void TokenDataset::copy(std::int64_t position, std::int64_t count, std::int32_t* out) const {
  auto file = std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin();
  while (count > 0) {
    const auto f = static_cast<std::size_t>(file++);
    const std::int64_t begin = ends_[f] - files_[f].size();
    const std::int64_t here = std::min(count, ends_[f] - position);
    files_[f].read(position - begin, {out, static_cast<std::size_t>(here)}, vocabulary_);
    position += here;
    out += here;
    count -= here;
  }
}

void TokenDataset::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  require(index >= 0 && index < size(), "sample {} was asked for of {}", index, size());
  const std::int64_t position = index * sequence_;
  copy(position, sequence_, inputs.as<std::int32_t>());
  std::int32_t* out = labels.as<std::int32_t>();
  copy(position + 1, sequence_, out);
  for (auto end = std::upper_bound(ends_.begin(), ends_.end(), position);
       end != ends_.end() && *end <= position + sequence_; ++end) {
    out[*end - 1 - position] = kIgnoredLabel;
  }
}

std::string TokenDataset::description() const {
  return fmt::format("{}, {}, {} of {}", counted(std::ssize(files_), "file"),
                     counted(ends_.back(), "token"), counted(size(), "sample"), sequence_);
}

}  // namespace sherd
