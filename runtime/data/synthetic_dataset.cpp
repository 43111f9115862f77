#include "runtime/data/synthetic_dataset.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/counted.h"
#include "core/error.h"
#include "runtime/data/data_sequences.h"

namespace sherd {
namespace {

constexpr std::array<float, 3> kSuccessorEnds = {0.7f, 0.9f, 0.97f};  // the fourth ends at 1

RngKey key_of(DataSequence sequence, std::uint64_t seed) {
  return {seed, static_cast<std::uint64_t>(sequence)};
}

void check_counts(std::int64_t samples, std::int64_t inputs, std::int64_t classes) {
  require(samples > 0, "data.samples is {}; synthetic data needs at least 1", samples);
  require(inputs > 0 && classes > 0, "synthetic data of {} inputs and {} classes was asked for",
          inputs, classes);
}

}  // namespace

SyntheticTokens::SyntheticTokens(std::int64_t samples, std::int64_t sequence,
                                 std::int64_t vocabulary, std::uint64_t seed)
    : samples_(samples), sequence_(sequence), vocabulary_(vocabulary), seed_(seed) {
  check_counts(samples, sequence, vocabulary);
}

std::int32_t SyntheticTokens::successor(std::int32_t token, float draw) const {
  std::size_t choice = 0;
  while (choice < kSuccessorEnds.size() && draw >= kSuccessorEnds[choice]) ++choice;
  const auto words = random_words(key_of(DataSequence::synthetic_successors, seed_),
                                  static_cast<std::uint64_t>(token));
  return static_cast<std::int32_t>(words[choice] % static_cast<std::uint64_t>(vocabulary_));
}

void SyntheticTokens::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  require(index >= 0 && index < samples_, "sample {} was asked for of {}", index, samples_);
  std::int32_t* in = inputs.as<std::int32_t>();
  std::int32_t* out = labels.as<std::int32_t>();
  const RngKey key = key_of(DataSequence::synthetic_tokens, seed_);
  const auto first = static_cast<std::uint64_t>(index * (sequence_ + 1));
  const float start = uniform(key, first) * static_cast<float>(vocabulary_);
  auto token = static_cast<std::int32_t>(
      std::min(static_cast<std::int64_t>(start), vocabulary_ - 1));  // the product may round up
  for (std::int64_t t = 0; t < sequence_; ++t) {
    in[t] = token;
    token = successor(token, uniform(key, first + 1 + static_cast<std::uint64_t>(t)));
    out[t] = token;
  }
}

std::string SyntheticTokens::description() const {
  return fmt::format("synthetic, {} of {}", counted(samples_, "sample"),
                     counted(sequence_, "token"));
}

SyntheticFeatures::SyntheticFeatures(std::int64_t samples, const SampleSpec& sample,
                                     std::uint64_t seed)
    : samples_(samples), sample_(sample), key_(key_of(DataSequence::synthetic_features, seed)) {
  check_counts(samples, sample.features, sample.label_range);
  const RngKey key = key_of(DataSequence::synthetic_teacher, seed);
  teacher_.resize(static_cast<std::size_t>(sample.features * sample.label_range));
  for (std::size_t i = 0; i < teacher_.size(); ++i) teacher_[i] = normal(key, i);
}

void SyntheticFeatures::read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const {
  require(index >= 0 && index < samples_, "sample {} was asked for of {}", index, samples_);
  float* x = inputs.as<float>();
  const auto first = static_cast<std::uint64_t>(index * sample_.features);
  for (std::int64_t f = 0; f < sample_.features; ++f) {
    x[f] = normal(key_, first + static_cast<std::uint64_t>(f));
  }
  std::int32_t best = 0;
  double best_score = 0.0;
  for (std::int64_t c = 0; c < sample_.label_range; ++c) {
    const float* row = teacher_.data() + c * sample_.features;
    const double score = std::inner_product(x, x + sample_.features, row, 0.0);
    if (c > 0 && score <= best_score) continue;
    best = static_cast<std::int32_t>(c);
    best_score = score;
  }
  *labels.as<std::int32_t>() = best;
}

std::string SyntheticFeatures::description() const {
  return fmt::format("synthetic, {} of {}", counted(samples_, "row"),
                     counted(sample_.features, "feature"));
}

}  // namespace sherd
