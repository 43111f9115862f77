#include "runtime/data/training_data.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "runtime/data/csv_dataset.h"
#include "runtime/data/file_glob.h"
#include "runtime/data/npy_dataset.h"
#include "runtime/data/synthetic_dataset.h"
#include "runtime/data/text_dataset.h"
#include "runtime/data/token_dataset.h"

namespace sherd {
namespace {

using Format = DataConfig::Format;

constexpr std::array<std::string_view, 7> kFormatNames = {"bytes", "llmc",  "nanogpt",  "csv",
                                                          "npy",   "jsonl", "synthetic"};

std::string_view name_of(Format format) { return kFormatNames[static_cast<std::size_t>(format)]; }

/// What a model takes, and the formats that give it.
struct Taken {
  std::string_view what;
  std::vector<Format> formats;
};

bool takes_tokens(const SampleSpec& sample) { return sample.inputs == SampleSpec::Inputs::tokens; }
bool takes_texts(const SampleSpec& sample) {
  return takes_tokens(sample) && !sample.label_per_token;
}

Taken taken_by(const SampleSpec& sample) {
  if (takes_texts(sample)) return {"texts with a label each", {Format::csv, Format::jsonl}};
  if (takes_tokens(sample)) {
    return {"tokens", {Format::bytes, Format::llmc, Format::nanogpt, Format::synthetic}};
  }
  return {"features", {Format::csv, Format::npy, Format::synthetic}};
}

void check_format(Format format, const SampleSpec& sample) {
  require(takes_tokens(sample) || !sample.label_per_token,
          "no data format gives features with a label for each");
  const Taken taken = taken_by(sample);
  std::vector<std::string_view> names;
  for (const Format fitting : taken.formats) names.push_back(name_of(fitting));
  require(std::count(taken.formats.begin(), taken.formats.end(), format) > 0,
          "data.format \"{}\" does not give the {} that the model takes: use {}", name_of(format),
          taken.what, fmt::join(names, ", "));
}

/// Every token is an input, and the label of the one before it.
std::int64_t vocabulary(const SampleSpec& sample) {
  return std::min(sample.input_range, sample.label_range);
}

void check(const DataConfig& config, const SampleSpec& sample) {
  const Format format = config.format;
  const bool synthetic = format == Format::synthetic;
  check_format(format, sample);
  require(synthetic || !config.train.empty(),
          "data.train is missing: name a file or a glob, or give data.format \"synthetic\"");
  require(!synthetic || (config.train.empty() && config.validation.empty()),
          "data.format \"synthetic\" reads no files: drop data.train and data.validation");
  require(config.validation.empty() || config.validation_fraction == 0.0,
          "data.validation names files and data.validation_fraction is {}: give one of them",
          config.validation_fraction);
  const bool has_columns = format == Format::csv || format == Format::jsonl;
  require(config.label_column.empty() || has_columns,
          "data.label_column is for formats csv and jsonl, not \"{}\"", name_of(format));
}

std::unique_ptr<Dataset> open_tokens(const DataConfig& config, const SampleSpec& sample,
                                     const std::string& pattern) {
  const auto open = config.format == Format::bytes  ? open_byte_file
                    : config.format == Format::llmc ? open_llmc_file
                                                    : open_nanogpt_file;
  std::vector<TokenFile> files;
  for (const std::string& path : matching_files(pattern)) files.push_back(open(path));
  return std::make_unique<TokenDataset>(std::move(files), config.sequence_length,
                                        vocabulary(sample));
}

std::unique_ptr<Dataset> open_npy(const SampleSpec& sample, const std::string& pattern) {
  const std::size_t comma = pattern.find(',');
  if (comma == std::string::npos) {
    return std::make_unique<NpyDataset>(matching_files(pattern), std::vector<std::string>{},
                                        sample);
  }
  return std::make_unique<NpyDataset>(matching_files(pattern.substr(0, comma)),
                                      matching_files(pattern.substr(comma + 1)), sample);
}

std::unique_ptr<Dataset> open_synthetic(const DataConfig& config, const SampleSpec& sample,
                                        std::uint64_t seed) {
  if (!takes_tokens(sample)) {
    return std::make_unique<SyntheticFeatures>(config.samples, sample, seed);
  }
  return std::make_unique<SyntheticTokens>(config.samples, config.sequence_length,
                                           vocabulary(sample), seed);
}

std::unique_ptr<Dataset> open(const DataConfig& config, const SampleSpec& sample,
                              const std::string& pattern, std::uint64_t seed) {
  if (takes_texts(sample)) {
    return std::make_unique<TextDataset>(matching_files(pattern), config, sample);
  }
  switch (config.format) {
    case Format::synthetic:
      return open_synthetic(config, sample, seed);
    case Format::csv:
      return std::make_unique<CsvDataset>(matching_files(pattern), config.label_column, sample);
    case Format::npy:
      return open_npy(sample, pattern);
    default:
      return open_tokens(config, sample, pattern);
  }
}

}  // namespace

TrainingData::TrainingData(const DataConfig& config, const SampleSpec& sample, std::uint64_t seed) {
  check(config, sample);
  train_files_ = open(config, sample, config.train, seed);
  if (config.validation.empty()) {
    SampleSplit split = split_samples(*train_files_, config.validation_fraction,
                                      takes_texts(sample) ? HeldOut::spread : HeldOut::ends);
    train_ = std::move(split.train);
    validation_ = std::move(split.validation);
    return;
  }
  validation_files_ = open(config, sample, config.validation, seed);
  train_ = all_samples(*train_files_);
  validation_ = all_samples(*validation_files_);
}

std::string TrainingData::description() const {
  std::string text = train_files_->description();
  if (validation_files_) return text + "; validation: " + validation_files_->description();
  if (validation_.empty()) return text + "; no validation";
  return text + fmt::format("; {} of them for validation", validation_.size());
}

}  // namespace sherd
