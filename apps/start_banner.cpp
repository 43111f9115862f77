#include "apps/start_banner.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/plan_text.h"
#include "apps/quantity.h"

namespace sherd {
namespace {

std::string weights_line(const RunConfig& run) {
  return run.model.path.empty() ? fmt::format("initialised from seed {}", run.seed)
                                : "weights from " + run.model.path;
}

std::string ranks_line(const RunPlan& plan, const StartFacts& facts) {
  return fmt::format("{} on {}, {} each; {}", plan.world, counted(facts.machines, "machine"),
                     counted(facts.threads, "thread"), facts.communicator);
}

/// Notes of the configuration, without those that the list of DeepSpeed's keys repeats.
std::vector<std::string> config_notes(const LoadedConfig& config, bool list_deepspeed) {
  if (!list_deepspeed) return config.notes;
  std::vector<std::string> listed;
  for (const KeyFate& fate : config.deepspeed) listed.push_back(to_string(fate));
  std::vector<std::string> notes;
  for (const std::string& note : config.notes) {
    if (std::find(listed.begin(), listed.end(), note) == listed.end()) notes.push_back(note);
  }
  return notes;
}

}  // namespace

std::string start_banner(const LoadedConfig& config, const RunPlan& plan, const StartFacts& facts) {
  const RunConfig& run = config.run;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<8}{}\n", name, value);
  };
  line("model", plan.model + ", " + weights_line(run));
  line("data", facts.data);
  line("run", fmt::format("{} of {}, into {}", counted(run.steps, "step"), batch_headline(plan),
                          run.output));
  line("ranks", ranks_line(plan, facts));
  line("plan",
       fmt::format("{}, {} nodes, hash {}", plan_headline(plan), plan.node_count, plan.hash));
  text += placement_lines(plan);
  const bool alike = plan.needs.size() == 1;
  line("memory",
       alike ? fmt::format("of {}", ranks_text(plan.needs.front().ranks)) : "of each kind of rank");
  text += memory_lines(plan);
  if (facts.list_deepspeed) text += "DeepSpeed's keys\n" + import_report(config.deepspeed);
  for (const std::string& note : config_notes(config, facts.list_deepspeed)) line("note", note);
  for (const std::string& note : facts.notes) line("note", note);
  text.pop_back();  // whoever prints lines ends them
  return text;
}

}  // namespace sherd
