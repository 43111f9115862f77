#pragma once

#include <cstdint>

namespace sherd {

/// How cross-entropy computes a row of so many bytes on a CUDA device: for the loss alone as for
/// the gradient too, so that the loss has the same bits.
struct CrossEntropyPlan {
  static constexpr int kMostThreads = 1024;

  /// `shared_bytes`: what a block may have of shared memory; `most_blocks`: of one row's cluster, a
  /// power of two, 1 where the device or the build has no clusters.
  CrossEntropyPlan(std::int64_t row_bytes, std::int64_t shared_bytes, unsigned most_blocks);

  unsigned blocks = 1;
  bool fits = false;  ///< in the shared memory of so many blocks; else the row is read twice
  std::int64_t block_bytes = 0;
  int threads = 32;
};

}  // namespace sherd
