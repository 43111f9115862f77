#include "runtime/data/sample_order.h"

#include "core/error.h"
#include "core/rng.h"
#include "runtime/data/data_sequences.h"

namespace sherd {

SampleOrder::SampleOrder(std::int64_t samples, bool shuffle, std::uint64_t seed)
    : samples_(samples), shuffle_(shuffle), seed_(seed) {
  require(samples > 0, "an order of {} samples was asked for; there must be at least 1", samples);
}

std::int64_t SampleOrder::position(std::int64_t n) const {
  require(n >= 0, "sample number {} was asked for; they begin at 0", n);
  const std::int64_t place = n % samples_;
  if (!shuffle_) return place;
  const auto sequence = static_cast<std::uint64_t>(DataSequence::order);
  const RngKey key{seed_, sequence + static_cast<std::uint64_t>(epoch(n))};
  return static_cast<std::int64_t>(
      permute(key, static_cast<std::uint64_t>(place), static_cast<std::uint64_t>(samples_)));
}

}  // namespace sherd
