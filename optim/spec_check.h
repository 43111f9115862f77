#pragma once

#include <cmath>
#include <string_view>

#include "core/error.h"

namespace sherd {

// Checks of settings; `key` is named as in a run file, with its section: "scheduler min_lr".

inline void require_not_negative(double value, std::string_view key) {
  require(value >= 0.0 && std::isfinite(value), "{} is a number of at least 0, got {}", key, value);
}

inline void require_ratio(double value, std::string_view key) {
  require(value >= 0.0 && value <= 1.0, "{} is between 0 and 1, got {}", key, value);
}

inline void require_beta(double value, std::string_view key) {
  require(value >= 0.0 && value < 1.0, "{} is at least 0 and below 1, got {}", key, value);
}

}  // namespace sherd
