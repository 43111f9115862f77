#pragma once

#include <chrono>
#include <string>

#include "apps/progress.h"
#include "apps/run_plan.h"
#include "apps/step_report.h"
#include "runtime/config/load.h"
#include "runtime/io/json_lines.h"

namespace sherd {

/// Makes the folder of a run, with config.json and plan.txt. Returns whether an earlier run's
/// metrics were there.
bool make_run_folder(const LoadedConfig& config, const RunPlan& plan, const std::string& nodes);

/// What a run tells while it runs: a line of metrics.jsonl for every step, and progress for people.
/// Exists on one rank only.
class RunReport {
 public:
  RunReport(const RunConfig& run, const std::string& token_noun);

  /// Lines for people.
  void say(const std::string& lines) { progress_.say(lines); }
  void add(const StepReport& step);
  /// What the device sustains: steps are compared with it from now on.
  void set_ceiling(double tflops) { progress_.set_ceiling(tflops); }
  /// `signal` stopped the run after the last step that was added; 0: it is complete.
  void finish(int signal);

 private:
  std::string folder_;
  std::int64_t steps_;
  std::int64_t last_step_ = 0;
  std::chrono::steady_clock::time_point started_;
  JsonLinesFile metrics_;
  Progress progress_;
};

}  // namespace sherd
