#include "apps/step_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace sherd {
namespace {

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string metrics_line(const StepReport& report) {
  const StepResult& result = report.result;
  nlohmann::ordered_json line = {{"step", report.step},
                                 {"loss", number(result.loss)},
                                 {"grad_norm", number(result.gradient_norm)},
                                 {"lr", result.lr},
                                 {"tokens", result.labels},
                                 {"tokens_per_s", number(report.tokens_per_s())},
                                 {"step_ms", report.step_ms},
                                 {"exposed_comm_ms", result.exposed_ms},
                                 {"loss_scale", result.loss_scale},
                                 {"skipped", !result.applied}};
  if (report.validation_loss) line["val_loss"] = number(*report.validation_loss);
  if (report.validation_accuracy) line["val_accuracy"] = *report.validation_accuracy;
  return line.dump();
}

}  // namespace sherd
