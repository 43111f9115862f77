#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/engine.h"

namespace sherd {

/// What is told of one step.
struct StepReport {
  std::int64_t step = 0;  ///< from 1
  StepResult result;
  double step_ms = 0.0;  ///< from the reading of its data to its end, without validation
  std::optional<double> validation_loss;
  std::optional<double> validation_accuracy;  ///< of classifiers

  double tokens_per_s() const {
    constexpr double kMsPerS = 1e3;
    return step_ms > 0.0 ? static_cast<double>(result.labels) / step_ms * kMsPerS : 0.0;
  }
};

/// Its line of metrics.jsonl. Numbers that are not finite are null.
std::string metrics_line(const StepReport& report);

}  // namespace sherd
