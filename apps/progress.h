#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "apps/step_report.h"
#include "apps/terminal.h"

namespace sherd {

struct ProgressOptions {
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t every = 1;  ///< steps between lines
  std::string token_noun = "tok";
  double ceiling_tflops = 0.0;  ///< what the device sustains; 0: not known
};

/// "step 12/300  loss 3.2101  norm 1.04  lr 1.2e-03  10.4 k tok/s  98 ms  comm 3 ms  ETA 28s"
std::string progress_line(const StepReport& report, const ProgressOptions& options,
                          double seconds_left);

/// The progress of a run on standard output: one line that is written over on a terminal, plain
/// lines elsewhere. Skipped steps and validations get lines that stay.
class Progress {
 public:
  Progress(ProgressOptions options, Terminal terminal);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void add(const StepReport& report);
  void set_ceiling(double tflops) { options_.ceiling_tflops = tflops; }
  /// A line that stays.
  void say(const std::string& line);

 private:
  void write_over(const std::string& line);
  std::string skipped_line(const StepReport& report) const;
  double seconds_left(const StepReport& report);

  ProgressOptions options_;
  Terminal terminal_;
  std::int64_t first_step_ = 0;
  std::chrono::steady_clock::time_point first_step_ended_;
  bool line_is_open_ = false;
};

}  // namespace sherd
