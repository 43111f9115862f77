#include "apps/fit_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/plan_advice.h"
#include "apps/quantity.h"
#include "apps/rates.h"
#include "apps/run_file.h"
#include "apps/text_file.h"

namespace sherd {
namespace {

constexpr double kMsPerSecond = 1e3;

/// Other names of what the search decides, which would contradict it.
constexpr const char* kOtherNames[] = {
    "zero_optimization.mics_shard_size", "zero_optimization.zero_hpz_partition_size",
    "zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.allgather_bucket_size",
    "zero_optimization.reduce_bucket_size"};

/// The run file again, with what was found.
std::string fitted_file(const PlanCommand& command, const Fit& fit, const DeviceMemory& memory) {
  std::vector<std::string> changes;
  for (const char* name : kOtherNames) changes.push_back(fmt::format("{}=null", name));
  changes.insert(changes.end(), fit.changes.begin(), fit.changes.end());
  return changed_run_file(command.source, changes, memory);
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

nlohmann::ordered_json fit_json(const FitSearch& search, const PlanTarget& target,
                                const DeviceMemory& memory) {
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
  nlohmann::ordered_json json = target_json(target);
  if (memory.reserve_bytes() > 0) json["reserve_bytes"] = memory.reserve_bytes();
  json.update({{"tried", search.tried}, {"fit", runs}});
  return json;
}

}  // namespace

ExitCode fit_command(const PlanCommand& command, const LoadedConfig& config,
                     const DeviceMemory& memory, const PlanTarget& target) {
  const RunConfig& run = config.run;
  const DeviceRates rates =
      command.rates.empty() ? usual_rates(run.device) : parse_rates(command.rates, run.device);
  const std::vector<Rates> ranks = rates_for(rates, run.compute, command.ranks);
  const FitSearch search = find_fits(run, memory, ranks);
  if (search.best.empty()) {
    throw ArgumentError(
        fmt::format("none of {} plans fits: {}", search.tried, why_none_fits(run, memory)));
  }
  const std::string text = command.json ? fit_json(search, target, memory).dump(2) + "\n"
                                        : target_lines(target, memory) + fit_table(search, rates);
  std::fputs(text.c_str(), stdout);
  if (command.write.empty()) return ExitCode::ok;
  write_text_file(command.write, fitted_file(command, search.best.front(), memory));
  return ExitCode::ok;
}

}  // namespace sherd
