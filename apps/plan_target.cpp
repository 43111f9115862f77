#include "apps/plan_target.h"

#include <fmt/format.h>

#include "apps/quantity.h"

namespace sherd {

PlanTarget find_target(DeviceChoice wanted, int ranks, int gpus) {
  if (wanted != DeviceChoice::automatic) return {wanted, "as asked for", std::nullopt};
  if (gpus >= ranks) {
    return {DeviceChoice::cuda,
            fmt::format("device is auto, and {} here have one each", counted(ranks, "rank")),
            std::nullopt};
  }
  return {DeviceChoice::cpu,
          fmt::format("device is auto, and there {} here for {}; --device cuda plans for GPUs",
                      gpus == 0   ? "is no GPU"
                      : gpus == 1 ? "is 1 GPU"
                                  : fmt::format("are {} GPUs", gpus),
                      counted(ranks, "rank")),
          std::nullopt};
}

std::string target_lines(const PlanTarget& target) {
  const char* name = target.device == DeviceChoice::cuda ? "GPUs" : "CPUs";
  std::string text = fmt::format("device  {}: {}\n", name, target.reason);
  if (target.memory) {
    text += fmt::format("memory  {} a rank: {}\n", bytes_text(target.memory->bytes()),
                        target.memory->source);
  }
  return text;
}

std::string target_lines(const PlanTarget& target, const DeviceMemory& memory) {
  return target_lines(target) + (target.memory ? "" : reserve_line(memory));
}

nlohmann::ordered_json target_json(const PlanTarget& target) {
  nlohmann::ordered_json json = {{"device", target.device == DeviceChoice::cuda ? "cuda" : "cpu"}};
  if (target.memory) {
    json["usable_memory"] = {{"bytes", target.memory->bytes()},
                             {"free_bytes", target.memory->free_bytes},
                             {"reserve_bytes", target.memory->reserve_bytes},
                             {"source", target.memory->source}};
  }
  return json;
}

}  // namespace sherd
