#include "apps/rank_memory.h"

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "apps/agreement.h"
#include "apps/plan_advice.h"
#include "apps/quantity.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

/// Libraries and communicators take memory beside the arena after what is free has been read.
constexpr double kPartOfFree = 0.92;

std::int64_t own_free_bytes(Device device, const MpiSession& session) {
  std::int64_t bytes = 0;
  if (device.is_cpu()) {
    std::ifstream meminfo("/proc/meminfo");
    bytes = available_bytes(meminfo) / session.local_size();
  } else {
    bytes = cuda_device_info(device.index).free_bytes;
  }
  return static_cast<std::int64_t>(kPartOfFree * static_cast<double>(bytes));
}

std::vector<std::int64_t> free_on_ranks(Device device, const MpiSession& session,
                                        Communicator& world) {
  const std::int64_t own = on_all_ranks(world, [&] { return own_free_bytes(device, session); });
  std::vector<std::int64_t> bytes;
  for (const std::string& text : gather_texts(world, std::to_string(own))) {
    bytes.push_back(std::stoll(text));
  }
  return bytes;
}

void place_within(LoadedConfig& config, const Model& model,
                  const std::vector<std::int64_t>& memory) {
  const int world = static_cast<int>(memory.size());
  place_run(config.run, model, world, memory);
  const DeviceMemory devices(memory, world);
  const RunPlan plan = plan_run(config.run, world);
  if (!devices.holds(plan)) throw ArgumentError(conclusion(judge(config.run, plan, devices)));
}

}  // namespace

std::int64_t available_bytes(std::istream& meminfo) {
  constexpr std::int64_t kKibibyte = 1024;
  std::string name;
  for (std::int64_t kibibytes = 0; meminfo >> name;) {
    if (name != "MemAvailable:") continue;
    require(static_cast<bool>(meminfo >> kibibytes) && kibibytes > 0,
            "/proc/meminfo: MemAvailable has no number");
    return kibibytes * kKibibyte;
  }
  throw ArgumentError(
      "/proc/meminfo has no MemAvailable; say what each rank may take with placement.memory");
}

void place_on_ranks(LoadedConfig& config, const Model& model, Device device,
                    const MpiSession& session, Communicator& world) {
  const PlacementConfig& placement = config.run.placement;
  if (placement.memory.empty() && !goes_by_memory(placement)) return;
  const bool given = !placement.memory.empty();
  const std::vector<std::int64_t> memory = given ? memory_per_rank(placement.memory, world.size())
                                                 : free_on_ranks(device, session, world);
  on_all_ranks(world, [&] {
    place_within(config, model, memory);
    return true;
  });
  record_placement(config, memory);
}

}  // namespace sherd
