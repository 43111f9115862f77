#include "runtime/data/unigram_entropy.h"

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/label.h"

namespace sherd {

double unigram_entropy(const SampleSet& samples, std::int64_t vocabulary) {
  require(!samples.empty() && samples.layout().dtype == DType::i32,
          "the unigram entropy of a set of {} samples without tokens was asked for",
          samples.size());
  const SampleLayout layout = samples.layout();
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(layout.inputs));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(layout.labels));
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary));
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    samples.read(i, {inputs.data(), DType::i32, {layout.inputs}},
                 {labels.data(), DType::i32, {layout.labels}});
    for (const std::int32_t label : labels) {
      if (label == kIgnoredLabel) continue;
      ++counts.at(static_cast<std::size_t>(label));
      ++total;
    }
  }
  double entropy = 0.0;
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / static_cast<double>(total);
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace sherd
