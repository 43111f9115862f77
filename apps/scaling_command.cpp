#include "apps/scaling_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/quantity.h"
#include "apps/scaling.h"
#include "apps/text_file.h"

namespace sherd {
namespace {

nlohmann::ordered_json models_json(const std::vector<LargestModel>& models) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LargestModel& model : models) {
    rows.push_back({{"ranks", model.ranks},
                    {"memory_bytes", model.memory_bytes},
                    {"stage", model.stage},
                    {"parameters", model.parameters},
                    {"layers", model.layers},
                    {"hidden_size", model.hidden_size}});
  }
  return {{"largest", rows}};
}

}  // namespace

ExitCode scaling_command(const PlanCommand& command, const RunConfig& run) {
  require(!command.device_memory.empty(),
          "--scaling needs --device-memory: one or more sizes of a rank's memory");
  const std::vector<LargestModel> models =
      find_largest_models(run, command.ranks, parse_byte_list(command.device_memory));
  const std::string text =
      command.json ? models_json(models).dump(2) + "\n" : scaling_table(models);
  std::fputs(text.c_str(), stdout);
  if (command.svg.empty()) return ExitCode::ok;
  write_text_file(command.svg,
                  scaling_svg(models, fmt::format("Largest {} by ranks and stage, micro-batch {}",
                                                  run.model.model_type, run.batch.micro)));
  return ExitCode::ok;
}

}  // namespace sherd
