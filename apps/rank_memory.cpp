#include "apps/rank_memory.h"

#include <map>
#include <string>
#include <vector>

#include "apps/agreement.h"
#include "apps/device_memory.h"
#include "apps/device_sizes.h"
#include "apps/plan_advice.h"
#include "apps/proc_memory.h"
#include "apps/quantity.h"
#include "collectives/control_exchange.h"
#include "collectives/shared_gpus.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

/// Free memory differs by so much between two looks at a GPU that nobody else uses, and a run file
/// may fill what an earlier look found. The reserve bears it.
constexpr std::int64_t kBetweenLooks = std::int64_t{128} << 20;

/// What ranks' devices have free for plans now.
struct FreeMemory {
  std::vector<std::int64_t> usable;     ///< of each rank alone
  std::vector<std::int64_t> available;  ///< CPUs: of each rank's machine, for all ranks on it
};

FreeMemory free_on_gpus(Device device, Communicator& world) {
  CudaDeviceInfo info = on_all_ranks(world, [&] { return cuda_device_info(device.index); });
  info.free_bytes /= ranks_at(world, info.pci_bus_id);
  return {gather_values(world, usable_memory(info, world.size()).bytes()), {}};
}

FreeMemory free_on_hosts(const MpiSession& session, Communicator& world) {
  const std::int64_t available = on_all_ranks(world, host_available_bytes);
  const UsableMemory usable = usable_host_memory(available, session.local_size());
  return {gather_values(world, usable.bytes()), gather_values(world, available)};
}

[[noreturn]] void refuse(const RunConfig& run, const RunPlan& plan, const DeviceMemory& memory) {
  throw ArgumentError(conclusion(judge(run, plan, memory)));
}

/// Throws when ranks together take more than their machine has, with what an equal part allows.
void check_machines(const RunConfig& run, const RunPlan& plan,
                    const std::vector<std::string>& hostnames,
                    const std::vector<std::int64_t>& available) {
  std::map<std::string, std::vector<int>> machines;
  for (int rank = 0; rank < plan.world; ++rank) {
    machines[hostnames[static_cast<std::size_t>(rank)]].push_back(rank);
  }
  std::vector<std::int64_t> parts(available.size());
  bool holds = true;
  for (const auto& [name, ranks] : machines) {
    std::int64_t least = INT64_MAX;  // ranks do not look at the same moment
    std::int64_t needed = 0;
    for (const int rank : ranks) {
      least = std::min(least, available[static_cast<std::size_t>(rank)]);
      needed += plan.needs_of(rank).peak_bytes;
    }
    for (const int rank : ranks) {
      parts[static_cast<std::size_t>(rank)] = least / static_cast<std::int64_t>(ranks.size());
    }
    holds = holds && needed <= least;
  }
  if (!holds) refuse(run, plan, DeviceMemory::parts_of_machines(parts));
}

/// Throws when a GPU has less free than the plan takes of it and libraries need beside it.
void check_gpus(const RunConfig& run, const Model& model, const RunPlan& plan,
                std::vector<std::int64_t> usable) {
  for (std::int64_t& bytes : usable) bytes += kBetweenLooks;
  const DeviceMemory now = DeviceMemory::leaving(std::move(usable), plan.world, DeviceKind::cuda);
  if (now.holds(plan)) return;
  if (goes_by_memory(run.placement)) {
    RunConfig placed = run;
    place_run(placed, model, plan.world, now.per_rank());
    const RunPlan other = plan_run(placed, plan.world);
    require(!now.holds(other),
            "placement.memory gives ranks more than their devices have free: rank {} needs {}, its "
            "device has {}; without placement.memory the run fits (peak {})",
            now.shortest_rank(plan), bytes_text(plan.needs_of(now.shortest_rank(plan)).peak_bytes),
            of_rank_text(now, now.shortest_rank(plan)), bytes_text(other.peak_bytes()));
  }
  refuse(run, plan, now);
}

}  // namespace

PlacedRun place_on_ranks(LoadedConfig& config, const Model& model, Device device,
                         const MpiSession& session, Communicator& world) {
  RunConfig& run = config.run;
  const bool given = !run.placement.memory.empty();
  const FreeMemory free =
      device.is_cpu() ? free_on_hosts(session, world) : free_on_gpus(device, world);
  const DeviceMemory memory = on_all_ranks(world, [&] {
    return given ? DeviceMemory(run.placement.memory, world.size(), device.kind)
                 : DeviceMemory::leaving(free.usable, world.size(), device.kind);
  });
  PlacedRun placed = on_all_ranks(world, [&] {
    PlacedRun found;
    place_run(run, model, world.size(), memory.per_rank());
    if (world.rank() > 0) return found;  // one verdict for all
    found.plan = plan_run(run, world.size(), {&found.nodes, {}});
    const RunPlan& plan = found.plan;
    if ((given || goes_by_memory(run.placement)) && !memory.holds(plan)) refuse(run, plan, memory);
    if (device.is_cpu()) check_machines(run, plan, session.hostnames(), free.available);
    if (!device.is_cpu()) check_gpus(run, model, plan, free.usable);
    return found;
  });
  if (given || goes_by_memory(run.placement)) record_placement(config, memory.size_per_rank());
  return placed;
}

}  // namespace sherd
