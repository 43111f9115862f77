#include "apps/scaling_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/quantity.h"
#include "apps/run_file.h"
#include "apps/scaling.h"
#include "apps/text_file.h"

namespace sherd {
namespace {

using Json = nlohmann::ordered_json;

Json model_json(const LargestModel& model) {
  return {{"ranks", model.ranks},
          {"memory_bytes", model.memory_bytes},
          {"stage", model.stage},
          {"parameters", model.parameters},
          {"layers", model.layers},
          {"hidden_size", model.hidden_size},
          {"intermediate_size", model.model.intermediate_size}};
}

void draw(const PlanCommand& command, const RunConfig& run,
          const std::vector<LargestModel>& models) {
  if (command.svg.empty()) return;
  write_text_file(command.svg,
                  scaling_svg(models, fmt::format("Largest {} by ranks and stage, micro-batch {}",
                                                  run.model.model_type, run.batch.micro)));
}

std::string largest_line(const LargestModel& model) {
  return fmt::format("largest {} parameters at stage {} on {} of {}: {}, {} wide\n",
                     count_text(static_cast<double>(model.parameters)), model.stage,
                     counted(model.ranks, "rank"), bytes_text(model.memory_bytes),
                     counted(model.layers, "layer"), model.hidden_size);
}

/// The one model for all ranks at the run's stage, and its run file.
std::vector<LargestModel> write_largest(const PlanCommand& command, const RunConfig& run,
                                        std::int64_t memory) {
  require(run.model.path.empty(),
          "--scaling --write makes a model of another size, but the run starts from the weights in "
          "{}; write its sizes into the run file instead",
          run.model.path);
  const LargestModel found = find_largest_model(run, command.ranks, memory, run.zero.stage);
  require(found.parameters > 0, "not even one layer of the narrowest model fits {} a rank",
          bytes_text(memory));
  write_text_file(command.write, changed_run_file(command.source, changes_for(found, run),
                                                  command.ranks, {{memory}, command.ranks}));
  return {found};
}

}  // namespace

ExitCode scaling_command(const PlanCommand& command, const RunConfig& run,
                         const PlanTarget& target) {
  require(!command.device_memory.empty(),
          "--scaling needs --device-memory: one or more sizes of a rank's memory, or {}",
          kMemoryHere);
  const std::vector<std::int64_t> memories = parse_byte_list(command.device_memory);
  require(command.write.empty() || memories.size() == 1,
          "--scaling --write is for one size of memory, got {}", memories.size());
  const std::vector<LargestModel> models = command.write.empty()
                                               ? find_largest_models(run, command.ranks, memories)
                                               : write_largest(command, run, memories.front());
  std::string text = target_lines(target);
  text += command.write.empty() ? scaling_table(models) : largest_line(models.front());
  if (command.json) {
    Json json = target_json(target);
    for (const LargestModel& model : models) json["largest"].push_back(model_json(model));
    text = json.dump(2) + "\n";
  }
  std::fputs(text.c_str(), stdout);
  draw(command, run, models);
  return ExitCode::ok;
}

}  // namespace sherd
