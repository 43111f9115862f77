#pragma once

#include <cstdint>

#include "core/rng.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// y = x * m / (1 - probability), m = [uniform(key, first_index + i) >= probability]. `first_index` is the
/// element's index in the whole run's batch, so the mask is the same however the batch is split. The
/// backward pass is the same call on dy. y may alias x; probability 0 copies.
void dropout(const Tensor& x, const Tensor& y, float probability, RngKey key,
             std::uint64_t first_index, Stream& stream);

}  // namespace sherd
