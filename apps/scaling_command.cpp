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
  Json json = {{"ranks", model.ranks},
               {"memory_bytes", model.memory_bytes},
               {"stage", model.stage},
               {"parameters", model.parameters},
               {"layers", model.layers},
               {"hidden_size", model.hidden_size},
               {"intermediate_size", model.model.intermediate_size}};
  if (!model.sizes.empty()) json["memory_bytes_of_ranks"] = model.sizes;
  return json;
}

void draw(const PlanCommand& command, const RunConfig& run,
          const std::vector<LargestModel>& models) {
  if (command.svg.empty()) return;
  write_text_file(command.svg,
                  scaling_svg(models, fmt::format("Largest {} by ranks and stage, micro-batch {}",
                                                  run.model.model_type, run.batch.micro)));
}

std::string largest_line(const LargestModel& model) {
  const std::string ranks = model.sizes.empty() ? counted(model.ranks, "rank") + ", " : "";
  return fmt::format("largest {} parameters at stage {} on {}{}: {}, {} wide\n",
                     count_text(static_cast<double>(model.parameters)), model.stage, ranks,
                     sizes_text(model), counted(model.layers, "layer"), model.hidden_size);
}

/// The one model for all ranks at the run's stage, and its run file.
std::vector<LargestModel> write_largest(const PlanCommand& command, const RunConfig& run,
                                        const DeviceMemory& memory) {
  require(run.model.path.empty(),
          "--scaling --write makes a model of another size, but the run starts from the weights in "
          "{}; write its sizes into the run file instead",
          run.model.path);
  const LargestModel found = find_largest_model(run, memory, run.zero.stage);
  require(found.parameters > 0, "not even one layer of the narrowest model fits: {}",
          sizes_text(found));
  write_text_file(command.write, changed_run_file(command.source, changes_for(found, run), memory));
  return {found};
}

/// What a card's own size leaves out, for one rank and for several.
std::string reserve_lines(int ranks, std::int64_t size, DeviceKind kind) {
  std::string text = reserve_line({{size}, ranks, kind});
  if (ranks > 1) text += reserve_line({{size}, 1, kind});
  return text;
}

}  // namespace

ExitCode scaling_command(const PlanCommand& command, const RunConfig& run,
                         const std::vector<std::int64_t>& sizes, const PlanTarget& target) {
  require(
      !sizes.empty(),
      "--scaling needs --device-memory, {}, or placement.memory: a size for each rank, or sizes "
      "of which all ranks have the same",
      kMemoryHere);
  const DeviceKind kind = target.kind();
  const bool one_world =
      sizes.size() == 1 || sizes.size() == static_cast<std::size_t>(command.ranks);
  require(command.write.empty() || one_world,
          "--scaling --write is for one size of memory, or one per rank: got {} for {}",
          sizes.size(), counted(command.ranks, "rank"));
  const std::vector<LargestModel> models =
      command.write.empty() ? find_largest_models(run, command.ranks, sizes, kind)
                            : write_largest(command, run, {sizes, command.ranks, kind});
  std::string text = target_lines(target) + reserve_lines(command.ranks, sizes.front(), kind);
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
