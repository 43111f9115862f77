#include "apps/fit_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/quantity.h"
#include "apps/rates.h"
#include "apps/text_file.h"
#include "models/build.h"
#include "runtime/config/show.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

constexpr double kMsPerSecond = 1e3;

/// Other names of what the search decides, which would contradict it.
constexpr const char* kOtherNames[] = {
    "zero_optimization.mics_shard_size", "zero_optimization.zero_hpz_partition_size",
    "zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.allgather_bucket_size"};

std::string memory_json(const DeviceMemory& memory, int world) {
  std::vector<std::string> sizes;
  for (const std::int64_t bytes : memory.per_rank(memory.is_same_for_all() ? 1 : world)) {
    sizes.push_back(fmt::format("\"{}\"", bytes));
  }
  return fmt::format("[{}]", fmt::join(sizes, ","));
}

/// The run file again, with what was found.
std::string fitted_file(const PlanCommand& command, const Fit& fit, const DeviceMemory& memory) {
  std::vector<std::string> overrides = command.source.overrides;
  for (const char* name : kOtherNames) overrides.push_back(fmt::format("{}=null", name));
  overrides.insert(overrides.end(), fit.changes.begin(), fit.changes.end());
  overrides.push_back("placement.memory=" + memory_json(memory, command.ranks));
  LoadedConfig config = load_run_config(command.source.path, overrides, command.source.deepspeed);
  resolve_for_world(config, command.ranks);
  const std::vector<std::int64_t> sizes = memory.per_rank(command.ranks);
  place_run(config.run, build_model(config.run.model), command.ranks, sizes);
  record_placement(config, sizes);
  return config_json(config);
}

std::string fit_table(const FitSearch& search, const DeviceRates& rates) {
  std::string text = fmt::format("rates   {}\ntried   {}, fastest that fit:\n", to_string(rates),
                                 counted(search.tried, "plan"));
  text += fmt::format("{:>10}  {:>10}  {:>10}  {:>11}  run\n", "step ms", "per s", "peak",
                      "least left");
  for (const Fit& fit : search.best) {
    text +=
        fmt::format("{:>10.4g}  {:>10}  {:>10}  {:>11}  {}\n", fit.plan.time.seconds * kMsPerSecond,
                    count_text(fit.tokens_per_s), bytes_text(fit.plan.peak_bytes()),
                    bytes_text(fit.headroom_bytes), fit.description);
  }
  return text + fmt::format("\nthe first of them:\n  {}\n",
                            fmt::join(search.best.front().changes, "\n  "));
}

nlohmann::ordered_json fit_json(const FitSearch& search) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const Fit& fit : search.best) {
    runs.push_back({{"run", fit.description},
                    {"step_ms", fit.plan.time.seconds * kMsPerSecond},
                    {"exposed_comm_ms", fit.plan.time.exposed * kMsPerSecond},
                    {"tokens_per_s", fit.tokens_per_s},
                    {"peak_bytes", fit.plan.peak_bytes()},
                    {"headroom_bytes", fit.headroom_bytes},
                    {"changes", fit.changes}});
  }
  return {{"tried", search.tried}, {"fit", runs}};
}

}  // namespace

ExitCode fit_command(const PlanCommand& command, const LoadedConfig& config,
                     const DeviceMemory& memory) {
  const RunConfig& run = config.run;
  const DeviceRates rates =
      command.rates.empty() ? usual_rates(run.device) : parse_rates(command.rates, run.device);
  const FitSearch search = find_fits(run, command.ranks, memory, rates_for(rates, run.compute));
  if (search.best.empty()) {
    throw ArgumentError(fmt::format("none of {} plans fits: {}", search.tried,
                                    smallest_run_that_fits(run, command.ranks, memory)));
  }
  const std::string text =
      command.json ? fit_json(search).dump(2) + "\n" : fit_table(search, rates);
  std::fputs(text.c_str(), stdout);
  if (command.write.empty()) return ExitCode::ok;
  write_text_file(command.write, fitted_file(command, search.best.front(), memory));
  return ExitCode::ok;
}

}  // namespace sherd
