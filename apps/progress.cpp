#include "apps/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "apps/quantity.h"

namespace sherd {
namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kPlain = "\x1b[0m";
constexpr const char* kClearToEnd = "\x1b[K";

/// "98", "3.2": tenths where they matter.
std::string ms_text(double ms) {
  constexpr double kWhole = 10.0;
  return fmt::format("{:.{}f}", ms, ms < kWhole ? 1 : 0);
}

/// "  512 TFLOP/s (76%)": this rank's products, against what its device sustains where that is
/// known. What makes less than one is not told.
std::string rate_text(const StepReport& report, double ceiling_tflops) {
  constexpr double kFlopsPerMs = 1e9;  // of one TFLOP/s
  const double tflops =
      report.step_ms > 0.0 ? report.result.flops / report.step_ms / kFlopsPerMs : 0.0;
  if (tflops < 1.0) return "";
  const std::string text = fmt::format("  {:.0f} TFLOP/s", tflops);
  constexpr double kPercent = 100.0;
  return ceiling_tflops > 0.0
             ? fmt::format("{} ({:.0f}%)", text, kPercent * tflops / ceiling_tflops)
             : text;
}

/// The first `columns` characters of UTF-8 text.
std::string cut_to(const std::string& text, int columns) {
  int seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xc0u) != 0x80u;
    if (starts && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string progress_line(const StepReport& report, const ProgressOptions& options,
                          double seconds_left) {
  const StepResult& result = report.result;
  std::string line =
      fmt::format("step {}/{}  loss {:.4f}  norm {:.3g}  lr {:.2e}  {} {}/s  {} ms  comm {} ms",
                  report.step, options.steps, result.loss, result.gradient_norm, result.lr,
                  count_text(report.tokens_per_s()), options.token_noun, ms_text(report.step_ms),
                  ms_text(result.exposed_ms));
  line += rate_text(report, options.ceiling_tflops);
  if (report.validation_loss) line += fmt::format("  val {:.4f}", *report.validation_loss);
  if (report.validation_accuracy) {
    constexpr double kPercent = 100.0;
    line += fmt::format("  accuracy {:.1f}%", kPercent * *report.validation_accuracy);
  }
  return line + "  ETA " + duration_text(seconds_left);
}

Progress::Progress(ProgressOptions options, Terminal terminal)
    : options_(std::move(options)), terminal_(terminal) {}

Progress::~Progress() {
  if (line_is_open_) std::fputs("\n", stdout);
  std::fflush(stdout);
}

/// At the pace since the first step, which warms everything up.
double Progress::seconds_left(const StepReport& report) {
  constexpr double kMsPerS = 1e3;
  const auto now = std::chrono::steady_clock::now();
  if (first_step_ == 0) {
    first_step_ = report.step;
    first_step_ended_ = now;
  }
  const std::chrono::duration<double> passed = now - first_step_ended_;
  const auto done = static_cast<double>(report.step - first_step_);
  const double pace = done > 0 ? passed.count() / done : report.step_ms / kMsPerS;
  return pace * static_cast<double>(options_.steps - report.step);
}

std::string Progress::skipped_line(const StepReport& report) const {
  const std::string scale = report.result.loss_scale == 1.0
                                ? ""
                                : fmt::format(" (loss scale {:g})", report.result.loss_scale);
  const std::string line = fmt::format("step {}/{} skipped: {}{}", report.step, options_.steps,
                                       report.result.skipped_because, scale);
  return terminal_.has_colours ? kYellow + line + kPlain : line;
}

void Progress::add(const StepReport& report) {
  const double left = seconds_left(report);
  if (!report.result.applied) {
    say(skipped_line(report));
    return;
  }
  const bool last = report.step == options_.steps;
  const bool due = report.step % options_.every == 0 || last;
  if (!due && !report.validation_loss) return;
  const std::string line = progress_line(report, options_, left);
  if (terminal_.is_terminal && !report.validation_loss && !last) {
    write_over(line);
  } else {
    say(line);
  }
}

void Progress::write_over(const std::string& line) {
  const std::string shown = cut_to(line, terminal_.columns - 1);
  const bool dim = terminal_.has_colours;
  const std::string text =
      fmt::format("\r{}{}{}{}", dim ? kDim : "", shown, dim ? kPlain : "", kClearToEnd);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  line_is_open_ = true;
}

void Progress::say(const std::string& line) {
  std::fputs(((line_is_open_ ? std::string("\r") + kClearToEnd : "") + line + "\n").c_str(),
             stdout);
  std::fflush(stdout);
  line_is_open_ = false;
}

}  // namespace sherd
