#pragma once

#include <cstdint>

#include "tests/models/unit_runner.h"

namespace sherd::testing {

/// Checks the gradient of every parameter against central differences of the training loss, along a
/// direction that is half the gradient's own and half random.
void check_slopes(UnitRunner& runner, const HostBatch& batch, std::uint64_t seed);

}  // namespace sherd::testing
