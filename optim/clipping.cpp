#include "optim/clipping.h"

#include <algorithm>

#include "core/error.h"

namespace sherd {

double clip_factor(double norm, double max_norm) {
  require(max_norm >= 0.0, "gradient_clipping is at least 0 (0: none), got {}", max_norm);
  constexpr double kEpsilon = 1e-6;
  return max_norm == 0.0 ? 1.0 : std::min(1.0, max_norm / (norm + kEpsilon));
}

}  // namespace sherd
