#include "apps/plan.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/fit_command.h"
#include "apps/plan_advice.h"
#include "apps/plan_target.h"
#include "apps/plan_text.h"
#include "apps/quantity.h"
#include "apps/scaling_command.h"
#include "core/cuda_backend.h"
#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

using Json = nlohmann::ordered_json;

/// A run that was planned, and what is known of the devices it is for.
struct Planned {
  PlanTarget target;
  RunPlan plan;
  std::string nodes;
  std::optional<DeviceMemory> memory;
  std::optional<Verdict> verdict;
};

Json rank_json(int rank, const Planned& planned) {
  const RankNeeds& needs = planned.plan.needs_of(rank);
  Json bytes;
  for (std::size_t tag = 0; tag < needs.bytes.size(); ++tag) {
    bytes[std::string(name_of(static_cast<MemoryTag>(tag)))] = needs.bytes[tag];
  }
  Json json = {{"rank", rank},
               {"bytes", bytes},
               {"gap_bytes", needs.gap_bytes},
               {"peak_bytes", needs.peak_bytes},
               {"samples", planned.plan.batch.samples_of_rank(rank)},
               {"traffic",
                {{"gather_bytes", needs.traffic.gather_bytes},
                 {"reduce_bytes", needs.traffic.reduce_bytes},
                 {"replicate_bytes", needs.traffic.replicate_bytes}}}};
  if (planned.memory) {
    json["memory_bytes"] = planned.memory->of_rank(rank);
    json["headroom_bytes"] = planned.memory->of_rank(rank) - needs.peak_bytes;
  }
  return json;
}

/// Bytes that all ranks together receive in a step.
Json total_traffic(const RunPlan& plan) {
  Traffic sum;
  for (const RankNeeds& needs : plan.needs) {
    const auto ranks = static_cast<std::int64_t>(needs.ranks.size());
    sum.gather_bytes += ranks * needs.traffic.gather_bytes;
    sum.reduce_bytes += ranks * needs.traffic.reduce_bytes;
    sum.replicate_bytes += ranks * needs.traffic.replicate_bytes;
  }
  return {{"gather_bytes", sum.gather_bytes},
          {"reduce_bytes", sum.reduce_bytes},
          {"replicate_bytes", sum.replicate_bytes}};
}

Json verdict_json(const Verdict& verdict) {
  Json alternatives = Json::array();
  for (const Alternative& a : verdict.alternatives) {
    alternatives.push_back({{"change", a.change}, {"peak_bytes", a.peak_bytes}, {"fits", a.fits}});
  }
  return alternatives;
}

void print_json(const Planned& planned) {
  const RunPlan& plan = planned.plan;
  Json ranks = Json::array();
  for (int rank = 0; rank < plan.world; ++rank) ranks.push_back(rank_json(rank, planned));
  Json document = target_json(planned.target);
  document.update({{"model", plan.model},
                   {"parameters", plan.parameters},
                   {"stage", plan.options.stage},
                   {"ranks", ranks},
                   {"traffic", total_traffic(plan)},
                   {"node_count", plan.node_count},
                   {"hash", plan.hash}});
  const std::optional<Verdict>& verdict = planned.verdict;
  if (!planned.nodes.empty()) document["nodes"] = planned.nodes;
  if (planned.memory && planned.memory->reserve_bytes() > 0) {
    document["reserve_bytes"] = planned.memory->reserve_bytes();
  }
  if (verdict) document["fits"] = verdict->fits;
  if (verdict && !verdict->fits) document["alternatives"] = verdict_json(*verdict);
  std::puts(document.dump(2).c_str());
}

void print_text(const Planned& planned) {
  const std::optional<Verdict>& verdict = planned.verdict;
  std::string text =
      planned.memory ? target_lines(planned.target, *planned.memory) : target_lines(planned.target);
  text += plan_table(planned.plan);
  if (planned.memory) text.append("\n").append(headroom_lines(planned.plan, *planned.memory));
  if (!planned.nodes.empty()) text += "\n" + planned.nodes;
  if (verdict && verdict->fits) text += "fits\n";
  if (verdict && !verdict->fits) {
    text += fmt::format("\ndoes not fit: {}\nplanned instead, smallest change first:\n",
                        verdict->problem);
    for (const Alternative& a : verdict->alternatives) {
      text += fmt::format("  {:>10}  {}  {}\n", bytes_text(a.peak_bytes),
                          a.fits ? "fits        " : "does not fit", a.change);
    }
  }
  std::fputs(text.c_str(), stdout);
}

/// What devices hold: what was read of them, what `--device-memory` gives, else the run file.
std::vector<std::int64_t> sizes_of(const PlanCommand& command, const RunConfig& run,
                                   const PlanTarget& target) {
  if (target.memory) {
    return DeviceMemory::leaving({target.memory->bytes()}, command.ranks, target.kind()).sizes();
  }
  if (!command.device_memory.empty()) return parse_byte_list(command.device_memory);
  return run.placement.memory;
}

/// Settles which device is planned for, here and in the run, and what is left open of its memory.
PlanTarget settle_target(const PlanCommand& command, RunConfig& run) {
  const bool open = run.device == DeviceChoice::automatic;
  PlanTarget target = find_target(run.device, command.ranks, open ? cuda_device_count() : 0);
  run.device = target.device;
  if (command.device_memory == kMemoryHere) {
    target.memory = usable_memory_here(target.kind(), command.ranks);
  }
  return target;
}

}  // namespace

ExitCode plan_command(PlanCommand command) {
  require(command.write.empty() || command.fit || command.scaling,
          "--write needs --fit or --scaling: which run to write");
  if (!command.device.empty()) {
    command.source.overrides.push_back(fmt::format("device=\"{}\"", command.device));
  }
  const RunSource& source = command.source;
  LoadedConfig config = load_run_config(source.path, source.overrides, source.deepspeed);
  resolve_for_world(config, command.ranks);
  RunConfig& run = config.run;
  Planned planned;
  planned.target = settle_target(command, run);
  const std::vector<std::int64_t> sizes = sizes_of(command, run, planned.target);
  if (command.scaling) return scaling_command(command, run, sizes, planned.target);
  if (!sizes.empty()) {
    planned.memory.emplace(sizes, command.ranks, planned.target.kind());
  }
  require(planned.memory || !command.fit,
          "--fit needs to know what ranks may take: --device-memory, or placement.memory");
  if (command.fit) return fit_command(command, config, *planned.memory, planned.target);
  if (planned.memory) {
    const std::vector<std::int64_t> memory = planned.memory->per_rank();
    place_run(run, build_model(run.model), command.ranks, memory);
    record_placement(config, planned.memory->size_per_rank());
  }
  for (const std::string& note : config.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  planned.plan = plan_run(run, command.ranks, {command.nodes ? &planned.nodes : nullptr, {}});
  if (planned.memory) planned.verdict = judge(run, planned.plan, *planned.memory);
  command.json ? print_json(planned) : print_text(planned);
  if (planned.verdict && !planned.verdict->fits) throw ArgumentError(conclusion(*planned.verdict));
  return ExitCode::ok;
}

}  // namespace sherd
