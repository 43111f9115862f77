#pragma once

#include <chrono>
#include <string>

#include "apps/progress.h"
#include "apps/run_plan.h"
#include "apps/step_report.h"
#include "runtime/config/load.h"
#include "runtime/io/folder_lock.h"
#include "runtime/io/json_lines.h"

namespace sherd {

/// The folder of a run while it is written into.
struct RunFolder {
  FolderLock lock;
  bool replaces = false;  ///< whether an earlier run's metrics were there
};

/// Throws ArgumentError when the file system of `folder` has not so much room left.
void require_room(const std::string& folder, std::int64_t needed_bytes);

/// Makes the folder of a run, with config.json and plan.txt. Throws ArgumentError when it holds
/// files of these names that no run has written, or another run is writing into it.
RunFolder make_run_folder(const LoadedConfig& config, const RunPlan& plan,
                          const std::string& nodes);

/// What a run tells while it runs: a line of metrics.jsonl for every step, and progress for people.
/// Exists on one rank only.
class RunReport {
 public:
  RunReport(const RunConfig& run, const std::string& token_noun, FolderLock lock);

  /// Lines for people.
  void say(const std::string& lines) { progress_.say(lines); }
  void add(const StepReport& step);
  /// What the device sustains: steps are compared with it from now on.
  void set_ceiling(double tflops) { progress_.set_ceiling(tflops); }
  /// `signal` stopped the run after the last step that was added; 0: it is complete.
  void finish(int signal);

 private:
  FolderLock lock_;
  std::string folder_;
  bool writes_model_;
  std::int64_t steps_;
  std::int64_t last_step_ = 0;
  std::int64_t skipped_ = 0;
  std::chrono::steady_clock::time_point started_;
  JsonLinesFile metrics_;
  Progress progress_;
};

}  // namespace sherd
