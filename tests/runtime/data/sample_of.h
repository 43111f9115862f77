#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/dataset.h"

namespace sherd {

/// One sample in vectors; what a reader leaves unwritten stays poison.
struct Sample {
  std::vector<std::int32_t> tokens;
  std::vector<float> features;
  std::vector<std::int32_t> labels;
  bool operator==(const Sample&) const = default;
};

/// `set` is a Dataset or a SampleSet.
template <class Set>
Sample sample_of(const Set& set, std::int64_t index) {
  constexpr std::int32_t kPoison = -0x5A5A5A5A;
  const SampleLayout layout = set.layout();
  const auto inputs = static_cast<std::size_t>(layout.inputs);
  Sample sample{
      {}, {}, std::vector<std::int32_t>(static_cast<std::size_t>(layout.labels), kPoison)};
  void* data = nullptr;
  if (layout.dtype == DType::i32) {
    sample.tokens.assign(inputs, kPoison);
    data = sample.tokens.data();
  } else {
    sample.features.assign(inputs, -1.2345e30f);
    data = sample.features.data();
  }
  set.read(index, {data, layout.dtype, {layout.inputs}},
           {sample.labels.data(), DType::i32, {layout.labels}});
  return sample;
}

}  // namespace sherd
