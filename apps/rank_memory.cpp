#include "apps/rank_memory.h"

#include <fstream>
#include <string>
#include <vector>

#include "apps/agreement.h"
#include "apps/device_memory.h"
#include "apps/plan_advice.h"
#include "apps/proc_memory.h"
#include "collectives/shared_gpus.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

std::int64_t usable_of_gpu(Device device, Communicator& world) {
  CudaDeviceInfo info = on_all_ranks(world, [&] { return cuda_device_info(device.index); });
  info.free_bytes /= ranks_at(world, info.pci_bus_id);
  return usable_memory(info, world.size()).bytes();
}

std::int64_t usable_of_host(const MpiSession& session, Communicator& world) {
  return on_all_ranks(world, [&] {
    std::ifstream meminfo("/proc/meminfo");
    return usable_host_memory(available_bytes(meminfo), session.local_size()).bytes();
  });
}

std::vector<std::int64_t> usable_on_ranks(Device device, const MpiSession& session,
                                          Communicator& world) {
  const std::int64_t own =
      device.is_cpu() ? usable_of_host(session, world) : usable_of_gpu(device, world);
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

void place_on_ranks(LoadedConfig& config, const Model& model, Device device,
                    const MpiSession& session, Communicator& world) {
  const PlacementConfig& placement = config.run.placement;
  if (placement.memory.empty() && !goes_by_memory(placement)) return;
  const bool given = !placement.memory.empty();
  const std::vector<std::int64_t> memory = given ? memory_per_rank(placement.memory, world.size())
                                                 : usable_on_ranks(device, session, world);
  on_all_ranks(world, [&] {
    place_within(config, model, memory);
    return true;
  });
  record_placement(config, memory);
}

}  // namespace sherd
