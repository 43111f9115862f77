#pragma once

#include <cstdint>

namespace sherd {

/// The order in which a run reads its samples. Sample number n of the whole run, counted over all
/// ranks, steps and epochs, is a pure function of (seed, n): the same at any world size. A run's
/// place in its data is therefore one integer, the next n, which a checkpoint keeps.
class SampleOrder {
 public:
  /// Over a set of `samples`; each epoch takes every one once, in a permutation of its own when
  /// `shuffle`, else in sequence.
  SampleOrder(std::int64_t samples, bool shuffle, std::uint64_t seed);

  /// Position in the set of sample number `n` of the run.
  std::int64_t position(std::int64_t n) const;
  /// Passes over the set that are complete before sample number `n`.
  std::int64_t epoch(std::int64_t n) const { return n / samples_; }
  std::int64_t samples_per_epoch() const { return samples_; }

 private:
  std::int64_t samples_;
  bool shuffle_;
  std::uint64_t seed_;
};

}  // namespace sherd
