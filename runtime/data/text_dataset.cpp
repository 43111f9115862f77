#include "runtime/data/text_dataset.h"

#include <algorithm>

#include "core/counted.h"
#include "core/error.h"
#include "runtime/data/byte_tokens.h"

namespace sherd {

TextDataset::TextDataset(const std::vector<std::string>& paths, const DataConfig& config,
                         const SampleSpec& sample)
    : sequence_(config.sequence_length), padding_(config.padding_token), names_(config.labels) {
  require(sequence_ >= 2,
          "data.sequence_length {} has no room for text behind the token that "
          "starts it; give at least 2",
          sequence_);
  require(sample.input_range >= kTextVocabulary && padding_ >= 0 && padding_ < sample.input_range,
          "texts need a vocabulary of {}, and padding in it; the model has {}, and pads with {}",
          kTextVocabulary, sample.input_range, padding_);
  require(names_.size() == sample.label_range, "{} labels are named for a model of {} classes",
          names_.size(), sample.label_range);
  for (const std::string& path : paths) {
    const std::int64_t before = size();
    read_labelled_texts(path, text_columns(config),
                        [&](const LabelledText& text) { add(text, path); });
    texts_per_file_.push_back(size() - before);
  }
}

void TextDataset::add(const LabelledText& sample, const std::string& path) {
  const auto label = names_.find(sample.label);
  if (!label) {
    throw DataError(fmt::format("{}:{}: label \"{}\" is none of the model's {}: {}", path,
                                sample.line, sample.label, names_.size(), names_.list()));
  }
  const auto room = static_cast<std::size_t>(sequence_ - 1);
  if (sample.text.size() > room) ++cut_;
  bytes_.append(sample.text, 0, room);
  ends_.push_back(static_cast<std::int64_t>(bytes_.size()));
  labels_.push_back(*label);
}

std::size_t TextDataset::checked(std::int64_t index) const {
  require(index >= 0 && index < size(), "sample {} was asked for of {}", index, size());
  return static_cast<std::size_t>(index);
}

void TextDataset::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  const std::size_t text = checked(index);
  std::int32_t* out = inputs.as<std::int32_t>();
  std::int32_t* const end = out + sequence_;
  *out++ = kTextStart;
  out = std::transform(bytes_.begin() + begin_of(text), bytes_.begin() + ends_[text], out,
                       [](char byte) { return static_cast<unsigned char>(byte); });
  std::fill(out, end, padding_);
  *labels.as<std::int32_t>() = labels_[text];
}

std::int64_t TextDataset::valid_inputs(std::int64_t index) const {
  const std::size_t text = checked(index);
  return 1 + ends_[text] - begin_of(text);
}

std::string TextDataset::description() const {
  return fmt::format("{}, {} of {} classes in samples of {}{}",
                     counted(std::ssize(texts_per_file_), "file"), counted(size(), "text"),
                     names_.size(), sequence_,
                     cut_ == 0 ? "" : fmt::format(", {} of them cut to it", cut_));
}

}  // namespace sherd
