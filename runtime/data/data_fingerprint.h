#pragma once

#include <cstdint>

#include "runtime/data/sample_set.h"

namespace sherd {

/// A digest of up to kFingerprintSamples samples spread evenly over a set, the first and the last
/// among them: equal for equal data, whatever file it lies in. Reads that much, so it is quick for
/// sets of any size, but misses a difference that lies between the samples of a larger one. 0 for
/// an empty set. Throws what reading throws.
std::uint64_t data_fingerprint(const SampleSet& samples);
inline constexpr std::int64_t kFingerprintSamples = 1024;

}  // namespace sherd
