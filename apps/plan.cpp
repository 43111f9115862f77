#include "apps/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/plan_advice.h"
#include "apps/plan_text.h"
#include "apps/quantity.h"
#include "runtime/config/load.h"

namespace sherd {
namespace {

using Json = nlohmann::ordered_json;

/// Whether the plan fits, and what would make it fit.
struct Verdict {
  bool fits = true;
  std::string problem;
  std::vector<Alternative> alternatives;
};

Verdict judge(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory) {
  Verdict verdict;
  verdict.fits = memory.holds(plan);
  if (verdict.fits) return verdict;
  const int rank = memory.shortest_rank(plan);
  verdict.problem =
      fmt::format("rank {} needs {}, its device has {}", rank,
                  bytes_text(plan.needs_of(rank).peak_bytes), bytes_text(memory.of_rank(rank)));
  verdict.alternatives = find_alternatives(run, plan.world, memory);
  return verdict;
}

const Alternative* smallest_that_fits(const std::vector<Alternative>& alternatives) {
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [](const Alternative& a) { return a.fits; });
  return found == alternatives.end() ? nullptr : &*found;
}

std::string conclusion(const Verdict& verdict) {
  const Alternative* best = smallest_that_fits(verdict.alternatives);
  if (best == nullptr) return verdict.problem + "; none of the changes tried makes it fit";
  return fmt::format("{}; the smallest change that fits: {} (peak {})", verdict.problem,
                     best->change, bytes_text(best->peak_bytes));
}

Json rank_json(int rank, const RankNeeds& needs) {
  Json bytes;
  for (std::size_t tag = 0; tag < needs.bytes.size(); ++tag) {
    bytes[std::string(name_of(static_cast<MemoryTag>(tag)))] = needs.bytes[tag];
  }
  return {{"rank", rank},
          {"bytes", bytes},
          {"gap_bytes", needs.gap_bytes},
          {"peak_bytes", needs.peak_bytes},
          {"traffic",
           {{"gather_bytes", needs.traffic.gather_bytes},
            {"reduce_bytes", needs.traffic.reduce_bytes},
            {"replicate_bytes", needs.traffic.replicate_bytes}}}};
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

void print_json(const RunPlan& plan, const std::optional<Verdict>& verdict,
                const std::string& nodes) {
  Json ranks = Json::array();
  for (int rank = 0; rank < plan.world; ++rank) {
    ranks.push_back(rank_json(rank, plan.needs_of(rank)));
  }
  Json document = {
      {"model", plan.model}, {"parameters", plan.parameters},  {"stage", plan.options.stage},
      {"ranks", ranks},      {"traffic", total_traffic(plan)}, {"node_count", plan.node_count},
      {"hash", plan.hash}};
  if (!nodes.empty()) document["nodes"] = nodes;
  if (verdict) document["fits"] = verdict->fits;
  if (verdict && !verdict->fits) document["alternatives"] = verdict_json(*verdict);
  std::puts(document.dump(2).c_str());
}

void print_text(const RunPlan& plan, const std::optional<Verdict>& verdict,
                const std::string& nodes) {
  std::string text = plan_table(plan);
  if (!nodes.empty()) text += "\n" + nodes;
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

}  // namespace

ExitCode plan_command(const PlanCommand& command) {
  const RunSource& source = command.source;
  LoadedConfig config = load_run_config(source.path, source.overrides, source.deepspeed);
  resolve_for_world(config, command.ranks);
  for (const std::string& note : config.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  std::string nodes;
  const RunPlan plan = plan_run(config.run, command.ranks, command.nodes ? &nodes : nullptr);
  std::optional<Verdict> verdict;
  if (!command.device_memory.empty()) {
    verdict = judge(config.run, plan,
                    DeviceMemory(parse_byte_list(command.device_memory), command.ranks));
  }
  command.json ? print_json(plan, verdict, nodes) : print_text(plan, verdict, nodes);
  if (verdict && !verdict->fits) throw ArgumentError(conclusion(*verdict));
  return ExitCode::ok;
}

}  // namespace sherd
