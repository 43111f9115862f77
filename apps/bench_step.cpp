#include "apps/bench_step.h"

#include <cstdio>
#include <memory>
#include <sstream>

#include "apps/agreement.h"
#include "apps/bench_table.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "apps/rank_memory.h"
#include "apps/thread_count.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/data/training_data.h"
#include "runtime/engine.h"
#include "runtime/engine_options.h"
#include "runtime/step_batches.h"

namespace sherd {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// One contender: a run with everything it needs, and what its steps took.
class Contender {
 public:
  Contender(const BenchStepCommand& command, const std::string& changes, MpiSession& session)
      : name_(changes.empty() ? "as the run file says" : changes), world_(session.world()) {
    LoadedConfig config = on_all_ranks(*world_, [&] { return load(command, changes); });
    Model model = on_all_ranks(*world_, [&] { return build_model(config.run.model); });
    place_on_ranks(config, model, {}, session, *world_);
    run_ = config.run;
    data_ = std::make_unique<TrainingData>(
        on_all_ranks(*world_, [&] { return TrainingData(run_.data, model.sample, run_.seed); }));
    EngineOptions options = engine_options(run_, model, world_->size());
    const auto& host = session.hostnames()[static_cast<std::size_t>(world_->rank())];
    options.threads = choose_threads(*world_, host, run_.threads).threads;
    engine_ = std::make_unique<Engine>(std::move(model), options, *world_);
    batches_ = std::make_unique<StepBatches>(run_, data_->train(), world_->rank(), world_->size());
  }

  void turn(int steps) {
    engine_->step(batches_->read(next_++));  // caches and links wake up
    for (int s = 0; s < steps; ++s) {
      const StepResult result = engine_->step(batches_->read(next_++));
      step_ms_.push_back(result.step_ms);
      exposed_ms_.push_back(result.exposed_ms);
      labels_ = result.labels;
    }
  }

  double step_ms() const { return median(step_ms_); }
  const std::string& name() const { return name_; }

  std::vector<std::string> row(double base_ms) const {
    constexpr double kMsPerSecond = 1e3;
    return {name_,
            fmt::format("{:.1f}", step_ms()),
            fmt::format("{:.3f}", step_ms() / base_ms),
            fmt::format("{:.0f}", static_cast<double>(labels_) / step_ms() * kMsPerSecond),
            fmt::format("{:.1f}", median(exposed_ms_)),
            bytes_text(engine_->measured_peak_bytes())};
  }

 private:
  LoadedConfig load(const BenchStepCommand& command, const std::string& changes) const {
    std::vector<std::string> overrides = command.source.overrides;
    for (const std::string& change : words_of(changes)) overrides.push_back(change);
    LoadedConfig config = load_run_config(command.source.path, overrides, command.source.deepspeed);
    resolve_for_world(config, world_->size());
    require_trainable(config);
    return config;
  }

  std::string name_;
  std::unique_ptr<Communicator> world_;
  RunConfig run_;
  std::unique_ptr<TrainingData> data_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<StepBatches> batches_;
  std::int64_t next_ = 0;
  std::int64_t labels_ = 0;
  std::vector<double> step_ms_;
  std::vector<double> exposed_ms_;
};

}  // namespace

ExitCode bench_step_command(const BenchStepCommand& command, MpiSession& session) {
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(std::make_unique<Contender>(command, "", session));
  for (const std::string& changes : command.against) {
    contenders.push_back(std::make_unique<Contender>(command, changes, session));
  }
  run_or_end_job(session, [&] {
    for (int round = 0; round < command.rounds; ++round) {
      for (const auto& contender : contenders) contender->turn(command.steps_per_round);
    }
    return 0;
  });
  if (session.rank() != 0) return ExitCode::ok;
  BenchTable table({"run", "step ms", "ratio", "labels/s", "exposed ms", "peak a rank"});
  for (const auto& contender : contenders) table.add(contender->row(contenders[0]->step_ms()));
  std::fputs(fmt::format("{}, {} each in turns, medians\n{}", counted(session.size(), "rank"),
                         counted(std::int64_t{command.rounds} * command.steps_per_round, "step"),
                         table.text())
                 .c_str(),
             stdout);
  return ExitCode::ok;
}

}  // namespace sherd
