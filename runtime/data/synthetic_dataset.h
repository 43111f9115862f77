#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rng.h"
#include "runtime/data/dataset.h"
#include "runtime/data/sample_spec.h"

namespace sherd {

/// Samples made from a seed: a pure function of (seed, index), the same on every rank.
///
/// Tokens are a Markov chain: each token has four successors of its own, drawn from the seed, taken
/// with probabilities 0.7, 0.2, 0.07 and 0.03, so a model that has learnt the table reaches a loss
/// of at most 0.87 nats where guessing costs ln(vocabulary).
class SyntheticTokens final : public Dataset {
 public:
  SyntheticTokens(std::int64_t samples, std::int64_t sequence, std::int64_t vocabulary,
                  std::uint64_t seed);

  SampleLayout layout() const override { return {DType::i32, sequence_, sequence_}; }
  std::vector<std::int64_t> samples_per_file() const override { return {samples_}; }
  std::int64_t size() const override { return samples_; }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::string description() const override;

 private:
  std::int32_t successor(std::int32_t token, float draw) const;

  std::int64_t samples_;
  std::int64_t sequence_;
  std::int64_t vocabulary_;
  std::uint64_t seed_;
};

/// Features are standard normal; the label is the class whose row of a random matrix has the
/// largest product with them, so a linear model can learn it whole.
class SyntheticFeatures final : public Dataset {
 public:
  SyntheticFeatures(std::int64_t samples, const SampleSpec& sample, std::uint64_t seed);

  SampleLayout layout() const override { return {DType::f32, sample_.features, 1}; }
  std::vector<std::int64_t> samples_per_file() const override { return {samples_}; }
  std::int64_t size() const override { return samples_; }
  void read(std::int64_t index, const Tensor& inputs, const Tensor& labels) const override;
  std::string description() const override;

 private:
  std::int64_t samples_;
  SampleSpec sample_;
  RngKey key_;
  std::vector<float> teacher_;  // [classes, features]
};

}  // namespace sherd
