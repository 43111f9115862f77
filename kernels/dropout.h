#pragma once

#include <cstdint>

#include "core/rng.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// Whose numbers decide what is dropped.
struct DropoutKey {
  RngKey rng;
  /// Where given, in memory of the operation's device: how many sequences past `rng` the numbers
  /// are, read when the operation runs, so that a recorded one draws others each time.
  const std::uint64_t* sequences_past = nullptr;
};

/// The sequence that an operation draws from when it runs.
constexpr RngKey current(const DropoutKey& key) {
  const std::uint64_t past = key.sequences_past == nullptr ? 0 : *key.sequences_past;
  return {key.rng.seed, key.rng.sequence + past};
}

/// y = x / (1 - probability) where uniform(key, first_index + i) >= probability, else 0.
/// `first_index` is the element's index in the whole run's batch, so the mask is the same however
/// the batch is split. The backward pass is the same call on dy. y may alias x; probability 0
/// copies. f32, bf16 or f16; 0 <= probability < 1.
void dropout(const Tensor& x, const Tensor& y, float probability, const DropoutKey& key,
             std::uint64_t first_index, Stream& stream);

/// y = residual + dropout(x), rounded once; y may alias x or the residual. 0 < probability < 1.
void dropout(const Tensor& x, const Tensor& residual, const Tensor& y, float probability,
             const DropoutKey& key, std::uint64_t first_index, Stream& stream);

}  // namespace sherd
