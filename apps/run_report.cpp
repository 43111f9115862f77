#include "apps/run_report.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
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
  for (const char* name : {"config.json", "plan.txt", "memory.json", "model"}) {
    require(!std::filesystem::exists(fmt::format("{}/{}", folder, name)),
            "output: {0} holds {1}, which no run has written (there is no metrics.jsonl), and "
            "which this one would replace; give a folder of its own, such as {0}/run",
            folder, name);
  }
}

/// A run that can't write its model at the end should not begin.
void require_writable(const std::string& folder) {
  require(access(folder.c_str(), W_OK) == 0, "output: cannot write into the folder {}: {}", folder,
          std::generic_category().message(errno));
}

}  // namespace

void require_room(const std::string& folder, std::int64_t needed_bytes) {
  const std::filesystem::space_info space = std::filesystem::space(folder);
  require(space.available >= static_cast<std::uintmax_t>(needed_bytes),
          "output: the trained model takes {} in {}, where {} are free", bytes_text(needed_bytes),
          folder, bytes_text(static_cast<std::int64_t>(space.available)));
}

RunFolder make_run_folder(const LoadedConfig& config, const RunPlan& plan,
                          const std::string& nodes) {
  const std::string& folder = config.run.output;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  require(!failed, "output: cannot make the folder {}: {}", folder, failed.message());
  require_writable(folder);
  if (config.run.checkpoint.final_model) {
    require_room(folder, plan.parameters * size_of(config.run.compute));
  }
  RunFolder made{FolderLock(folder), std::filesystem::exists(metrics_path(folder))};
  if (!made.replaces) require_own_files(folder);
  std::filesystem::remove(folder + "/memory.json", failed);  // an earlier run's
  write_file_atomically(folder + "/config.json", config_json(config));
  write_file_atomically(folder + "/plan.txt", plan_table(plan) + "\n" + nodes);
  return made;
}

RunReport::RunReport(const RunConfig& run, const std::string& token_noun, FolderLock lock)
    : lock_(std::move(lock)),
      folder_(run.output),
      writes_model_(run.checkpoint.final_model),
      steps_(run.steps),
      started_(std::chrono::steady_clock::now()),
      metrics_(metrics_path(run.output), JsonLinesFile::Mode::replace),
      progress_({.steps = run.steps, .every = run.log_every, .token_noun = token_noun},
                find_terminal()) {}

void RunReport::add(const StepReport& step) {
  last_step_ = step.step;
  if (!step.result.applied) ++skipped_;
  metrics_.append(metrics_line(step));
  progress_.add(step);
}

void RunReport::finish(int signal) {
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started_;
  const std::string end = signal == 0 ? counted(steps_, "step")
                                      : fmt::format("stopped by {} after step {} of {}",
                                                    stop_signal_name(signal), last_step_, steps_);
  const std::string skips = skipped_ == 0 ? "" : fmt::format(", {} of them skipped,", skipped_);
  say(fmt::format("{}{} in {}; {} is in {}", end, skips, duration_text(passed.count()),
                  writes_model_ ? "the model" : "what was measured",
                  writes_model_ ? folder_ + "/model" : folder_));
}

}  // namespace sherd
