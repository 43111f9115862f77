#pragma once

#include <cstdint>
#include <span>

#include "runtime/config/run_config.h"
#include "runtime/engine.h"

namespace sherd {

/// How many units of typical size (the median of `unit_sizes`, in elements) make up a bucket of
/// `elements`: at least 1 where `elements` is not 0, and at most kMostUnitsInBucket, so that a
/// bucket larger than the model still leaves something to overlap with.
int units_in_bucket(std::span<const std::int64_t> unit_sizes, std::int64_t elements);
inline constexpr int kMostUnitsInBucket = 8;

/// A run that was resolved for `world` ranks, as the engine takes it; `model` is the run's or one
/// of own units. `threads` is left to the caller.
EngineOptions engine_options(const RunConfig& run, const Model& model, int world);

}  // namespace sherd
