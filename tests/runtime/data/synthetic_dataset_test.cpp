#include "runtime/data/synthetic_dataset.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "tests/runtime/data/sample_of.h"

namespace sherd {

TEST_CASE("synthetic tokens are a function of seed and index", "[data]") {
  const SyntheticTokens data(100, 16, 50, 3);
  CHECK(sample_of(data, 7) == sample_of(SyntheticTokens(8, 16, 50, 3), 7));
  CHECK_FALSE(sample_of(data, 7) == sample_of(SyntheticTokens(100, 16, 50, 4), 7));
  CHECK_FALSE(sample_of(data, 7) == sample_of(data, 8));
}

TEST_CASE("synthetic tokens can be learnt: few successors, one likely", "[data]") {
  constexpr std::int64_t kVocabulary = 50;
  const SyntheticTokens data(400, 64, kVocabulary, 3);
  std::map<std::int32_t, std::map<std::int32_t, double>> counts;
  double total = 0.0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Sample sample = sample_of(data, i);
    for (std::size_t t = 0; t < sample.tokens.size(); ++t) {
      REQUIRE((sample.tokens[t] >= 0 && sample.tokens[t] < kVocabulary));
      if (t > 0) REQUIRE(sample.tokens[t] == sample.labels[t - 1]);
      counts[sample.tokens[t]][sample.labels[t]] += 1.0;
      total += 1.0;
    }
  }
  double conditional_entropy = 0.0;
  for (const auto& [token, successors] : counts) {
    CHECK(successors.size() <= 4);
    double own = 0.0;
    for (const auto& [next, count] : successors) own += count;
    for (const auto& [next, count] : successors) {
      conditional_entropy -= count / total * std::log(count / own);
    }
  }
  CHECK(counts.size() > 10);
  CHECK(conditional_entropy < 0.88);
  CHECK(conditional_entropy > 0.5);
}

TEST_CASE("a vocabulary of one token is enough for synthetic tokens", "[data]") {
  const Sample sample = sample_of(SyntheticTokens(3, 4, 1, 3), 2);
  CHECK(sample.tokens == std::vector<std::int32_t>(4, 0));
  CHECK(sample.labels == std::vector<std::int32_t>(4, 0));
}

TEST_CASE("a linear model separates synthetic features", "[data]") {
  constexpr std::int64_t kFeatures = 5;
  constexpr std::int64_t kClasses = 3;
  const SampleSpec spec = {SampleSpec::Inputs::features, kFeatures, false, 0, kClasses};
  const SyntheticFeatures data(2000, spec, 11);
  // The multi-class perceptron stops making mistakes only where classes are linearly separable.
  std::vector<double> weights(kClasses * kFeatures, 0.0);
  int last_errors = 0;
  std::vector<int> class_counts(kClasses, 0);
  for (int pass = 0; pass < 40; ++pass) {
    last_errors = 0;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const Sample sample = sample_of(data, i);
      const auto label = static_cast<std::size_t>(sample.labels[0]);
      if (pass == 0) ++class_counts[label];
      std::size_t best = 0;
      std::vector<double> scores(kClasses, 0.0);
      for (std::size_t c = 0; c < kClasses; ++c) {
        for (std::size_t f = 0; f < kFeatures; ++f) {
          scores[c] += weights[c * kFeatures + f] * static_cast<double>(sample.features[f]);
        }
        if (scores[c] > scores[best]) best = c;
      }
      if (best == label) continue;
      ++last_errors;
      for (std::size_t f = 0; f < kFeatures; ++f) {
        weights[label * kFeatures + f] += static_cast<double>(sample.features[f]);
        weights[best * kFeatures + f] -= static_cast<double>(sample.features[f]);
      }
    }
  }
  CHECK(last_errors < 40);
  for (const int count : class_counts) CHECK(count > 100);
}

TEST_CASE("synthetic features are standard normal", "[data]") {
  const SyntheticFeatures data(2000, {SampleSpec::Inputs::features, 5, false, 0, 3}, 11);
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    for (const float x : sample_of(data, i).features) {
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
  }
  CHECK(std::abs(sum / 10000.0) < 0.05);  // five standard errors
  CHECK(std::abs(squares / 10000.0 - 1.0) < 0.08);
}

TEST_CASE("synthetic data needs a size", "[data]") {
  CHECK_THROWS_AS(SyntheticTokens(0, 4, 10, 1), ArgumentError);
  CHECK_THROWS_AS(SyntheticTokens(5, 4, 0, 1), ArgumentError);
  const SampleSpec spec = {SampleSpec::Inputs::features, 0, false, 0, 3};
  CHECK_THROWS_AS(SyntheticFeatures(5, spec, 1), ArgumentError);
  CHECK_THROWS_AS(sample_of(SyntheticTokens(5, 4, 10, 1), 5), ArgumentError);
}

}  // namespace sherd
