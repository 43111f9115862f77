#include "apps/progress.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

using namespace sherd;

namespace {

StepReport some_report() {
  StepReport report;
  report.step = 12;
  report.step_ms = 98.4;
  report.result.applied = true;
  report.result.loss = 3.21009;
  report.result.labels = 1024;
  report.result.gradient_norm = 1.0449;
  report.result.lr = 1.2e-3;
  report.result.exposed_ms = 3.2;
  return report;
}

}  // namespace

TEST_CASE("a progress line holds what people watch") {
  StepReport report = some_report();
  const ProgressOptions options{.steps = 300, .every = 1, .token_noun = "tok"};
  CHECK(progress_line(report, options, 28.3) ==
        "step 12/300  loss 3.2101  norm 1.04  lr 1.20e-03  10.4 k tok/s  98 ms  comm 3.2 ms  "
        "ETA 28s");
  report.validation_loss = 2.5;
  CHECK(progress_line(report, options, 0).find("  val 2.5000  ETA") != std::string::npos);
  report.validation_accuracy = 0.8125;
  CHECK(progress_line(report, options, 0).find("  val 2.5000  accuracy 81.2%  ETA") !=
        std::string::npos);
}

TEST_CASE("a progress line tells a device's rate, and of what it sustains where that is known") {
  StepReport report = some_report();
  ProgressOptions options{.steps = 300, .every = 1, .token_noun = "tok"};
  report.result.flops = 52.4e12;
  CHECK(progress_line(report, options, 0).find("comm 3.2 ms  533 TFLOP/s  ETA") !=
        std::string::npos);
  options.ceiling_tflops = 686;
  CHECK(progress_line(report, options, 0).find("  533 TFLOP/s (78%)  ETA") != std::string::npos);
  report.result.flops = 5e9;
  CHECK(progress_line(report, options, 0).find("FLOP") == std::string::npos);
}

TEST_CASE("a line of metrics has exactly the documented fields") {
  StepReport report = some_report();
  const std::set<std::string> fields = {
      "step",         "loss",    "grad_norm",       "lr",         "tokens",
      "tokens_per_s", "step_ms", "exposed_comm_ms", "loss_scale", "skipped"};
  const auto names = [](const nlohmann::json& line) {
    std::set<std::string> found;
    for (const auto& [name, value] : line.items()) found.insert(name);
    return found;
  };
  auto line = nlohmann::json::parse(metrics_line(report));
  CHECK(names(line) == fields);
  CHECK(line["step"] == 12);
  CHECK(line["loss"] == 3.21009);
  CHECK(line["tokens"] == 1024);
  CHECK(line["skipped"] == false);

  report.validation_loss = 2.5;
  report.validation_accuracy = 0.8125;
  report.result.applied = false;
  report.result.loss = std::numeric_limits<double>::quiet_NaN();
  report.result.gradient_norm = std::numeric_limits<double>::infinity();
  line = nlohmann::json::parse(metrics_line(report));
  CHECK(line["val_loss"] == 2.5);
  CHECK(line["val_accuracy"] == 0.8125);
  CHECK(line["skipped"] == true);
  CHECK(line["loss"].is_null());
  CHECK(line["grad_norm"].is_null());
}
