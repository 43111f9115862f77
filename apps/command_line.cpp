#include "apps/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/bench_collectives.h"
#include "apps/bench_kernels.h"
#include "apps/bench_rates.h"
#include "apps/bench_step.h"
#include "apps/config_command.h"
#include "apps/doctor.h"
#include "apps/generate.h"
#include "apps/plan.h"
#include "apps/quantity.h"
#include "apps/terminal.h"
#include "apps/train.h"
#include "apps/version.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

/// Where options are parsed into; what is run copies its own.
struct Arguments {
  TrainCommand train;
  PlanCommand plan;
  ConfigShowCommand show;
  std::string import_path;
  GenerateCommand generate;
  BenchStepCommand bench_step;
  BenchCollectivesCommand bench_collectives;
  BenchKernelsCommand bench_kernels;
  BenchRatesCommand bench_rates;
  bool version = false;
  bool json = false;
};

void add_run_source(CLI::App& app, RunSource& source) {
  app.add_option("run_file", source.path, "the run file")->required()->type_name("RUN.json");
  app.add_option("--set", source.overrides, "set a key, over what the files say; repeatable")
      ->type_name("KEY=JSON")
      ->allow_extra_args(false);
  app.add_option("--deepspeed", source.deepspeed, "a DeepSpeed file with engine keys")
      ->type_name("DS.json");
}

void add_train(CLI::App& app, Arguments& all, Command& command) {
  add_run_source(app, all.train.source);
  app.add_option("--resume", all.train.resume, "not there yet: refused");
  app.footer(
      "SIGUSR1 to mpirun, or SIGTERM to a rank, ends the run after its step with exit code 75.");
  app.callback([&] {
    command.as_a_rank = [train = all.train](MpiSession& session) {
      return train_command(train, session);
    };
  });
}

void add_plan(CLI::App& app, Arguments& all, Command& command) {
  PlanCommand& plan = all.plan;
  add_run_source(app, plan.source);
  app.add_option("--ranks", plan.ranks, "how many ranks to plan for")
      ->required()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--device", plan.device, "in place of the run file's device")
      ->type_name("auto|cpu|cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--device-memory", plan.device_memory,
                 "what devices hold: one size, or one per rank between commas, or auto: what those "
                 "here have free. On CPUs a plan may take all of a size; on GPUs it is the card's, "
                 "less a reserve for driver and libraries that is told. Says what to change when "
                 "the run does not fit. With --scaling, one size per rank are those of its ranks, "
                 "and other lists are of worlds whose ranks all have the same")
      ->type_name("SIZE[,SIZE…]");
  app.add_option_function<std::string>(
         "--format", [&](const std::string& format) { plan.json = format == "json"; },
         "how to print it")
      ->type_name("text|json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag("--nodes", plan.nodes, "list the nodes of the plan too");
  CLI::Option* fit =
      app.add_flag("--fit", plan.fit, "search for the fastest run that fits the memory of ranks");
  app.add_option("--rates", plan.rates,
                 "with --fit: what devices sustain, as gemm=TFLOP/s,memory=GB/s,link=GB/s or a "
                 "file of `sherd bench rates`")
      ->needs(fit)
      ->type_name("RATES");
  CLI::Option* scaling =
      app.add_flag("--scaling", plan.scaling,
                   "the largest model of the run's shape, by ranks, memory and stage")
          ->excludes(fit);
  app.add_option("--write", plan.write,
                 "with --fit: the run file of the fastest; with --scaling: that of the largest at "
                 "the run's stage")
      ->type_name("RUN.json");
  app.add_option("--svg", plan.svg, "with --scaling: draw it")->needs(scaling)->type_name("FILE");
  app.callback([&] { command.alone = [plan = all.plan] { return plan_command(plan); }; });
}

void add_config_show(CLI::App& config, Arguments& all, Command& command) {
  CLI::App* show = config.add_subcommand("show", "every value of a run, and where it comes from");
  add_run_source(*show, all.show.source);
  show->add_option("--ranks", all.show.ranks, "resolve the batch for so many ranks")
      ->check(CLI::Range(1, 1 << 20));
  show->add_flag("--json", all.show.json, "as a run file that can be loaded");
  show->callback([&] { command.alone = [show = all.show] { return config_show_command(show); }; });
}

void add_config(CLI::App& app, Arguments& all, Command& command) {
  app.require_subcommand(1);
  add_config_show(app, all, command);
  CLI::App* importing = app.add_subcommand(
      "import", "what becomes of each key of a DeepSpeed file: honoured, approximated or refused");
  importing->add_option("file", all.import_path, "the DeepSpeed file")
      ->required()
      ->type_name("DS.json");
  importing->callback(
      [&] { command.alone = [path = all.import_path] { return config_import_command(path); }; });
  app.add_subcommand("schema", "the JSON schema of run files, for editors")->callback([&] {
    command.alone = config_schema_command;
  });
  app.add_subcommand("docs", "the reference of run files, as Markdown")->callback([&] {
    command.alone = config_docs_command;
  });
}

void add_generate(CLI::App& app, Arguments& all, Command& command) {
  GenerateCommand& generate = all.generate;
  app.add_option("folder", generate.folder, "folder of a run or of a model")
      ->required()
      ->type_name("RUN_OR_MODEL_FOLDER");
  app.add_option("--prompt", generate.prompt, "the text to go on from")->required();
  app.add_option("--tokens", generate.tokens, "how many to make")->capture_default_str();
  app.add_option("--temperature", generate.sampler.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--top-k", generate.sampler.top_k, "draw among so many; 0: all")
      ->capture_default_str();
  app.add_option("--seed", generate.sampler.seed, "of the draws")->capture_default_str();
  app.callback(
      [&] { command.alone = [generate = all.generate] { return generate_command(generate); }; });
}

void add_bench_step(CLI::App& app, Arguments& all, Command& command) {
  BenchStepCommand& bench = all.bench_step;
  add_run_source(app, bench.source);
  app.add_option("--against", bench.against,
                 "a variant to run in turns with it: overrides between blanks; repeatable")
      ->type_name("\"KEY=JSON …\"")
      ->allow_extra_args(false);
  app.add_option("--rounds", bench.rounds, "turns")->capture_default_str();
  app.add_option("--steps", bench.steps_per_round, "counted steps a turn")->capture_default_str();
  app.callback([&] {
    command.as_a_rank = [bench = all.bench_step](MpiSession& session) {
      return bench_step_command(bench, session);
    };
  });
}

constexpr int kMostRepetitions = 1 << 20;
constexpr int kMostThreads = 1 << 12;

void add_device(CLI::App& app, DeviceChoice& device) {
  app.add_option_function<std::string>(
         "--device",
         [&device](const std::string& name) {
           device = name == "auto"  ? DeviceChoice::automatic
                    : name == "cpu" ? DeviceChoice::cpu
                                    : DeviceChoice::cuda;
         },
         "auto, the default: GPUs where there are")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
}

void add_bench_collectives(CLI::App& app, Arguments& all, Command& command) {
  BenchCollectivesCommand& bench = all.bench_collectives;
  add_device(app, bench.device);
  app.add_option("--repetitions", bench.repetitions, "of each size")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostRepetitions));
  app.add_option_function<std::string>(
         "--largest", [&](const std::string& size) { bench.largest_bytes = parse_bytes(size); },
         "the largest tensor; 64 MiB on CPUs, 512 MiB on GPUs")
      ->type_name("SIZE");
  app.callback([&] {
    command.as_a_rank = [bench = all.bench_collectives](MpiSession& session) {
      return bench_collectives_command(bench, session);
    };
  });
}

void add_bench_rates(CLI::App& app, Arguments& all, Command& command) {
  BenchRatesCommand& bench = all.bench_rates;
  add_device(app, bench.device);
  app.add_option("--write", bench.write, "the file for `sherd plan --fit --rates`")
      ->type_name("RATES.json");
  app.callback([&] {
    command.as_a_rank = [bench = all.bench_rates](MpiSession& session) {
      return bench_rates_command(bench, session);
    };
  });
}

void add_bench_kernels(CLI::App& app, Arguments& all, Command& command) {
  BenchKernelsCommand& bench = all.bench_kernels;
  add_device(app, bench.device);
  app.add_option("--threads", bench.threads, "of CPUs; 0: all cores")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostThreads));
  app.add_option("--repetitions", bench.repetitions, "of each kernel")
      ->capture_default_str()
      ->check(CLI::Range(1, kMostRepetitions));
  app.callback([&] {
    command.alone = [bench = all.bench_kernels] { return bench_kernels_command(bench); };
  });
}

void add_bench(CLI::App& app, Arguments& all, Command& command) {
  app.require_subcommand(1);
  add_bench_step(*app.add_subcommand("step", "steps of a run, against variants of it"), all,
                 command);
  add_bench_collectives(
      *app.add_subcommand("collectives", "gathers and reductions, by each way of moving bytes"),
      all, command);
  add_bench_kernels(*app.add_subcommand("kernels", "kernels beside what bounds them"), all,
                    command);
  add_bench_rates(*app.add_subcommand("rates", "what devices and links sustain, for the planner"),
                  all, command);
}

void add_doctor(CLI::App& app, Arguments&, Command& command) {
  app.callback([&] { command.as_a_rank = doctor_command; });
}

/// All subcommands; `ranked` ones are started on every rank by mpirun.
struct Entry {
  const char* name;
  const char* description;
  void (*add)(CLI::App&, Arguments&, Command&);
  bool ranked;
};

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 run-time failure; 2 usage or configuration; 3 bad data or model folder; "
    "4 non-finite gradients; 5 communication; 75 stopped by a signal.";

constexpr Entry kEntries[] = {
    {"train", "train a model: mpirun -np N sherd train RUN.json", add_train, true},
    {"plan", "what a run takes, to the byte; needs no ranks, GPU or data", add_plan, false},
    {"config", "look at run files: show, import, schema, docs", add_config, false},
    {"generate", "sample text from a trained model", add_generate, false},
    {"bench", "measure steps, collectives and kernels", add_bench, true},
    {"doctor", "what this machine and launch offer, and what stands in the way", add_doctor, true},
};

/// Of ranks that all print the same, one does.
Command print_command(const std::string& text) {
  Command command;
  command.alone = [text] {
    if (is_first_rank()) std::fputs(text.c_str(), stdout);
    return ExitCode::ok;
  };
  return command;
}

/// An empty value mostly comes from a variable that is: it must not pass for one that is not given.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    option->check([option](const std::string& value) {
      if (!value.empty()) return std::string();
      return fmt::format("is empty; give {}{}", option->get_type_name(),
                         option->get_required() ? "" : ", or leave it out");
    });
  }
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_empty_values(*sub);
  }
}

/// The words from the last to the first, as CLI11 wants them. "--rates=" is two of them, so that
/// the value is an empty one and not the next word.
std::vector<std::string> reversed_words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {
    std::string word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      words.emplace_back();
      word.pop_back();
    }
    words.push_back(std::move(word));
  }
  return words;
}

[[noreturn]] void fail(const CLI::App& app, const std::string& message) {
  std::string name = "sherd";
  for (const CLI::App* sub = &app; !sub->get_subcommands().empty();) {
    sub = sub->get_subcommands().front();
    name += " " + sub->get_name();
  }
  throw ArgumentError(fmt::format("{}; see {} --help", message, name));
}

/// CLI11 would call a mistyped subcommand an unexpected argument.
void check_name(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  const std::string near = nearest(argv[1], names);
  throw ArgumentError(
      fmt::format("there is no subcommand \"{}\"; {}", argv[1],
                  near.empty() ? "there are " + joined(names) : "did you mean \"" + near + "\"?"));
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  Arguments all;
  Command command;
  CLI::App app("Trains models that are kept in shards and put together layer by layer.", "sherd");
  app.add_flag("--version", all.version, "print the version");
  app.add_flag("--json", all.json, "with --version: as JSON");
  app.footer(kExitCodes);
  check_name(argc, argv);
  for (const Entry& entry : kEntries) {
    entry.add(*app.add_subcommand(entry.name, entry.description), all, command);
  }
  refuse_empty_values(app);
  try {
    app.parse(reversed_words(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return print_command(app.help());
  } catch (const CLI::ParseError& error) {
    fail(app, error.what());
  }
  if (all.version) return print_command(version_text(all.json) + "\n");
  if (!command.alone && !command.as_a_rank) fail(app, "a subcommand is missing");
  return command;
}

bool names_ranked_command(int argc, const char* const* argv) {
  return argc > 1 && std::any_of(std::begin(kEntries), std::end(kEntries), [&](const Entry& entry) {
           return entry.ranked && std::string_view(argv[1]) == entry.name;
         });
}

}  // namespace sherd
