#pragma once

#include <cstdint>
#include <vector>

#include "runtime/plan.h"

namespace sherd {

/// A stretch of uses of a gathered buffer without a release in between. Positions are compute
/// positions counted over the whole step.
struct Residency {
  int buffer = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t after = -1;  ///< the gather starts when this position is done; -1: with the step
  int region = -1;          ///< where it is gathered
  int node = -1;            ///< the gather
};

/// The unit computed at a position of the step, and whether that is its backward pass.
int unit_at(const Plan& plan, std::int64_t position);
bool is_backward(const Plan& plan, std::int64_t position);

/// Per buffer, its residencies in order: the fewest gathers for which a buffer stays only while it
/// is used, or while letting go would not pay since the next gather would start before the last use
/// is over.
std::vector<std::vector<Residency>> find_residencies(const Plan& plan, const ShardLayout& layout);

}  // namespace sherd
