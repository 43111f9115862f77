#include "apps/train.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "apps/agreement.h"
#include "apps/device_choice.h"
#include "apps/device_memory.h"
#include "apps/job.h"
#include "apps/memory_use.h"
#include "apps/model_folder.h"
#include "apps/pretrained_weights.h"
#include "apps/rank_memory.h"
#include "apps/run_plan.h"
#include "apps/run_report.h"
#include "apps/same_config.h"
#include "apps/start_banner.h"
#include "apps/stop_signal.h"
#include "apps/thread_count.h"
#include "apps/validation.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/data/byte_tokens.h"
#include "runtime/data/training_data.h"
#include "runtime/engine.h"
#include "runtime/engine_options.h"
#include "runtime/io/atomic_file.h"
#include "runtime/step_batches.h"

namespace sherd {
namespace {

constexpr std::int64_t kByteVocabulary = 256;

/// Where products' algorithms are kept for later runs; empty where no such place is known.
std::filesystem::path product_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache == nullptr && home == nullptr) return {};
  const std::filesystem::path folder =
      (cache != nullptr ? std::filesystem::path(cache) : std::filesystem::path(home) / ".cache") /
      "sherd";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return {};
  return folder / "products.txt";
}

/// The model that a run starts from outlives it.
void require_source_kept(const RunConfig& run) {
  if (run.model.path.empty() || !run.checkpoint.final_model) return;
  const auto own = std::filesystem::weakly_canonical(std::filesystem::path(run.output) / "model");
  require(std::filesystem::weakly_canonical(run.model.path) != own,
          "model.path is {}, where this run would write its own model: give it another output",
          run.model.path);
}

LoadedConfig load_config(const TrainCommand& command, int world) {
  require(command.resume.empty(),
          "--resume {}: this version writes no checkpoints, so there is none to go on from; start "
          "without --resume",
          command.resume);
  const RunSource& source = command.source;
  LoadedConfig config = load_run_config(source.path, source.overrides, source.deepspeed);
  resolve_for_world(config, world);
  require_trainable(config);
  require_source_kept(config.run);
  return config;
}

/// Collective, between ranks that don't know yet how long to wait for each other.
LoadedConfig load_same_config(const TrainCommand& command, MpiSession& session) {
  const std::unique_ptr<Communicator> starting = session.world();
  LoadedConfig config =
      on_all_ranks(*starting, [&] { return load_config(command, session.size()); });
  require_same_settings(*starting, config.settings);
  return config;
}

std::unique_ptr<PretrainedWeights> open_weights(const RunConfig& run, const Model& model) {
  if (run.model.path.empty()) return nullptr;
  return std::make_unique<PretrainedWeights>(run.model.path, model.units);
}

std::vector<std::string> start_notes(const RunConfig& run, const PretrainedWeights* weights,
                                     const std::vector<std::string>& warnings, bool replaces) {
  std::vector<std::string> notes;
  if (weights != nullptr && !weights->unused().empty()) {
    notes.push_back(
        fmt::format("{}: no use for {}", weights->folder(), fmt::join(weights->unused(), ", ")));
  }
  if (weights != nullptr && run.data.format == DataConfig::Format::bytes &&
      run.model.vocab_size > kByteVocabulary) {
    notes.push_back(
        fmt::format("data.format bytes: the text's bytes are tokens 0 to {} of the model's {}, not "
                    "those of its tokenizer; text in its tokens comes as llmc or nanogpt .bin",
                    kByteVocabulary - 1, run.model.vocab_size));
  }
  if (weights != nullptr && run.model.model_type == "bert" &&
      run.model.vocab_size > kTextVocabulary) {
    notes.push_back(fmt::format(
        "texts are bytes, tokens 0 to {} of the model's {}, behind token {}: not what its "
        "tokenizer made of them",
        kByteVocabulary - 1, run.model.vocab_size, kTextStart));
  }
  if (run.checkpoint.every > 0) {
    notes.push_back(fmt::format(
        "checkpoint.every {}: this version writes no checkpoints; {}", run.checkpoint.every,
        run.checkpoint.final_model ? "the model is written at the end, and when the run is stopped"
                                   : "nor will the model be written (checkpoint.final_model)"));
  }
  for (const std::string& warning : warnings) {
    if (!warning.empty()) notes.push_back(warning);
  }
  if (replaces) notes.push_back(run.output + ": replaces what an earlier run left there");
  return notes;
}

/// Rank 0 makes the folder and tells what is about to happen.
std::unique_ptr<RunReport> start_report(const TrainCommand& command, const LoadedConfig& config,
                                        const MpiSession& session, const PlacedRun& placed,
                                        StartFacts facts, const PretrainedWeights* weights,
                                        const std::vector<std::string>& warnings,
                                        bool counts_tokens) {
  if (session.rank() != 0) return nullptr;
  RunFolder folder = make_run_folder(config, placed.plan, placed.nodes);
  auto report = std::make_unique<RunReport>(config.run, counts_tokens ? "tok" : "samples",
                                            std::move(folder.lock));
  const std::set<std::string> machines(session.hostnames().begin(), session.hostnames().end());
  facts.machines = static_cast<int>(machines.size());
  facts.list_deepspeed = !command.source.deepspeed.empty();
  facts.notes = start_notes(config.run, weights, warnings, folder.replaces);
  report->say(start_banner(config, placed.plan, facts));
  return report;
}

/// After a step, since only then it is known which products there are.
void tune(Engine& engine, int rank, RunReport* report) {
  const auto started = std::chrono::steady_clock::now();
  const ProductTuning done = engine.tune_products(product_cache());
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
  for (const std::string& warning : done.warnings) {
    std::fprintf(stderr, "warning: [rank %d] %s\n", rank, warning.c_str());
  }
  if (report == nullptr) return;
  report->set_ceiling(done.ceiling_tflops);
  const MatmulTuning& tuning = done.tuning;
  if (tuning.products == 0) return;
  std::string kinds;
  if (done.kinds > 1) kinds = fmt::format("; each of {} kinds of GPUs has its own", done.kinds);
  report->say(fmt::format("tuned   {} of {} matrix products in {:.1f} s: {:.3f} ms became {:.3f}{}",
                          tuning.changed, tuning.products, passed.count(), tuning.before_ms,
                          tuning.after_ms, kinds));
}

/// On GPUs, what ran and what memory it took: the first is known after a step, the second when the
/// libraries have taken theirs.
void tell_device(Engine& engine, Device device, std::int64_t step,
                 std::span<const MicroBatch> micro_batches, RunReport& report) {
  if (device.is_cpu()) return;
  if (step == 1) {
    for (const std::string& chosen : engine.chosen_kernels(micro_batches)) {
      report.say("kernels " + chosen);
    }
  }
  if (step == 2) {
    report.say("device  " +
               device_memory_text(cuda_device_info(device.index), engine.measured_peak_bytes()));
  }
}

/// Before a model is trusted: where it is measured, and where it is written.
void check_replicas(Engine& engine) {
  try {
    engine.check_replicas();
  } catch (const Error& error) {  // found on what all ranks have exchanged
    if (error.code() == ExitCode::communication) throw;
    throw SharedError(error.code(), error.what());
  }
}

/// Trains until the last step, or until a rank is asked to stop; returns that signal, or 0.
int train_steps(const RunConfig& run, const TrainingData& data, Engine& engine, Device device,
                Communicator& world, RunReport* report) {
  using Clock = std::chrono::steady_clock;
  StepBatches batches(run, data.train(), world.rank(), world.size());
  Validation validation(run, data.validation(), engine.model().sample, world.rank(), world.size());
  StopAgreement stop(world);
  for (std::int64_t step = 1; step <= run.steps; ++step) {
    const auto started = Clock::now();
    StepReport done;
    done.step = step;
    const std::span<const MicroBatch> micro_batches = batches.read(step - 1);
    done.result = engine.step(micro_batches);
    done.step_ms = std::chrono::duration<double, std::milli>(Clock::now() - started).count();
    const bool last = step == run.steps;
    const int signal = last ? 0 : stop.agree();
    const bool validates = signal == 0 && validation.is_due(step, last);
    if (validates) {
      const ValidationResult found = validation.measure(engine);
      done.validation_loss = found.loss;
      done.validation_accuracy = found.accuracy;
    }
    if (validates || last || signal != 0) check_replicas(engine);
    if (report != nullptr) {
      report->add(done);
      tell_device(engine, device, step, micro_batches, *report);
    }
    if (signal != 0) return signal;
    if (step == 1 && !last && run.tune_products) tune(engine, world.rank(), report);
  }
  return 0;
}

}  // namespace

ExitCode train_command(const TrainCommand& command, MpiSession& session) {
  const int rank = session.rank();
  const int size = session.size();

  // Whatever can be found wrong is found here, before ranks depend on each other.
  LoadedConfig config = load_same_config(command, session);
  const RunConfig& run = config.run;
  const std::unique_ptr<Communicator> world =
      session.world({.timeout_seconds = run.timeout_seconds});
  Model model = on_all_ranks(*world, [&] { return build_model(run.model); });
  const TrainingData data =
      on_all_ranks(*world, [&] { return TrainingData(run.data, model.sample, run.seed); });
  require_same_data(*world, data);
  const auto weights = on_all_ranks(*world, [&] { return open_weights(run, model); });
  const ThreadChoice threads =
      choose_threads(*world, session.hostnames()[static_cast<std::size_t>(rank)], run.threads);
  const Device device = on_all_ranks(
      *world, [&] { return choose_device(run.device, run.share_gpus, session, *world); });
  config.run.device = device.is_cpu() ? DeviceChoice::cpu : DeviceChoice::cuda;
  const PlacedRun placed = place_on_ranks(config, model, device, session, *world);
  const std::unique_ptr<Communicator> on_device =
      device_communicator(device, *world, session, run.timeout_seconds);
  Communicator& ranks = on_device ? *on_device : *world;
  const std::string exact_warning = run.exact ? exact_on_devices(device, *world) : "";
  const std::unique_ptr<RunReport> report = on_all_ranks(*world, [&] {
    StartFacts facts;
    facts.data = data.description();
    facts.communicator = ranks.description();
    facts.threads = threads.threads;
    return start_report(command, config, session, placed, facts, weights.get(),
                        {threads.warning, exact_warning}, model.sample.label_per_token);
  });

  EngineOptions options = engine_options(run, model, size);
  options.threads = threads.threads;
  Engine engine(std::move(model), options, ranks);
  const int signal = run_or_end_job(session, [&] {
    if (weights) engine.load_parameters(weights->source());
    const int stopped_by = train_steps(run, data, engine, device, *world, report.get());
    const std::string memory = memory_use_json(*world, engine, device);
    if (rank == 0) write_file_atomically(run.output + "/memory.json", memory);
    if (run.checkpoint.final_model) {
      write_model_folder(engine, run.model, run.output + "/model", rank);
    }
    return stopped_by;
  });
  if (report) report->finish(signal);
  return signal == 0 ? ExitCode::ok : ExitCode::stopped;
}

}  // namespace sherd
