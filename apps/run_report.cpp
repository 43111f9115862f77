#include "apps/run_report.h"

#include <filesystem>
#include <utility>

#include "apps/plan_text.h"
#include "apps/quantity.h"
#include "apps/stop_signal.h"
#include "core/error.h"
#include "runtime/config/show.h"
#include "runtime/io/atomic_file.h"

namespace sherd {
namespace {

std::string metrics_path(const std::string& folder) { return folder + "/metrics.jsonl"; }

/// An earlier run's files are replaced, anybody else's are not.
void require_own_files(const std::string& folder) {
  for (const char* name : {"config.json", "plan.txt", "model"}) {
    require(!std::filesystem::exists(fmt::format("{}/{}", folder, name)),
            "output: {0} holds {1}, which no run has written (there is no metrics.jsonl), and "
            "which this one would replace; give a folder of its own, such as {0}/run",
            folder, name);
  }
}

}  // namespace

RunFolder make_run_folder(const LoadedConfig& config, const RunPlan& plan,
                          const std::string& nodes) {
  const std::string& folder = config.run.output;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  require(!failed, "output: cannot make the folder {}: {}", folder, failed.message());
  RunFolder made{FolderLock(folder), std::filesystem::exists(metrics_path(folder))};
  if (!made.replaces) require_own_files(folder);
  write_file_atomically(folder + "/config.json", config_json(config));
  write_file_atomically(folder + "/plan.txt", plan_table(plan) + "\n" + nodes);
  return made;
}

RunReport::RunReport(const RunConfig& run, const std::string& token_noun, FolderLock lock)
    : lock_(std::move(lock)),
      folder_(run.output),
      steps_(run.steps),
      started_(std::chrono::steady_clock::now()),
      metrics_(metrics_path(run.output), JsonLinesFile::Mode::replace),
      progress_({.steps = run.steps, .every = run.log_every, .token_noun = token_noun},
                find_terminal()) {}

void RunReport::add(const StepReport& step) {
  last_step_ = step.step;
  metrics_.append(metrics_line(step));
  progress_.add(step);
}

void RunReport::finish(int signal) {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started_;
  const std::string end = signal == 0 ? counted(steps_, "step")
                                      : fmt::format("stopped by {} after step {} of {}",
                                                    stop_signal_name(signal), last_step_, steps_);
  say(fmt::format("{} in {}; the model is in {}/model", end, duration_text(passed.count()),
                  folder_));
}

}  // namespace sherd
