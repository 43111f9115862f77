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
#include "runtime/data/token_dataset.h"

namespace sherd {
namespace {

using Format = DataConfig::Format;

constexpr std::array<std::string_view, 6> kFormatNames = {"bytes", "llmc", "nanogpt",
                                                          "csv",   "npy",  "synthetic"};

std::string_view name_of(Format format) { return kFormatNames[static_cast<std::size_t>(format)]; }

bool takes_tokens(const SampleSpec& sample) { return sample.inputs == SampleSpec::Inputs::tokens; }

/// Every token is an input, and the label of the one before it.
std::int64_t vocabulary(const SampleSpec& sample) {
  return std::min(sample.input_range, sample.label_range);
}

void check(const DataConfig& config, const SampleSpec& sample) {
  const Format format = config.format;
  const bool synthetic = format == Format::synthetic;
  const bool table = format == Format::csv || format == Format::npy;
  require(synthetic || table != takes_tokens(sample),
          "data.format \"{}\" gives {}, but the model takes {}: use {}", name_of(format),
          table ? "features" : "tokens", takes_tokens(sample) ? "tokens" : "features",
          takes_tokens(sample) ? "bytes, llmc, nanogpt or synthetic" : "csv, npy or synthetic");
  require(sample.label_per_token == takes_tokens(sample), "no data format gives {} with {}",
          takes_tokens(sample) ? "tokens" : "features",
          sample.label_per_token ? "a label for each" : "one label per sample");
  require(synthetic || !config.train.empty(),
          "data.train is missing: name a file or a glob, or give data.format \"synthetic\"");
  require(!synthetic || (config.train.empty() && config.validation.empty()),
          "data.format \"synthetic\" reads no files: drop data.train and data.validation");
  require(config.validation.empty() || config.validation_fraction == 0.0,
          "data.validation names files and data.validation_fraction is {}: give one of them",
          config.validation_fraction);
  require(config.label_column.empty() || format == Format::csv,
          "data.label_column is for format \"csv\", not \"{}\"", name_of(format));
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
    SampleSplit split = split_samples(*train_files_, config.validation_fraction);
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
