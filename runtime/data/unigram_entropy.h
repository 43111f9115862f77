#pragma once

#include <cstdint>

#include "runtime/data/sample_set.h"

namespace sherd {

/// Entropy in nats of the labels of a set, each token counted by itself: the loss of the best model
/// that looks at no context. Reads the whole set. `vocabulary` bounds the labels.
double unigram_entropy(const SampleSet& samples, std::int64_t vocabulary);

}  // namespace sherd
