#include "apps/memory_use.h"

#include <nlohmann/json.hpp>

#include "apps/agreement.h"
#include "apps/proc_memory.h"
#include "core/cuda_backend.h"

namespace sherd {
namespace {

using Json = nlohmann::ordered_json;

Json own_memory(Communicator& world, const Engine& engine, Device device) {
  Json json = {{"rank", world.rank()},
               {"device", name_of(device)},
               {"planned_bytes", engine.memory_plan().arena_bytes},
               {"measured_bytes", engine.measured_peak_bytes()},
               {"resident_bytes", peak_resident_bytes()}};
  if (device.is_cpu()) return json;
  const CudaDeviceInfo info = cuda_device_info(device.index);
  json["device_bytes"] = info.total_bytes;
  json["device_used_bytes"] = info.total_bytes - info.free_bytes;
  return json;
}

}  // namespace

std::string memory_use_json(Communicator& world, const Engine& engine, Device device) {
  Json ranks = Json::array();
  for (const std::string& text : gather_texts(world, own_memory(world, engine, device).dump())) {
    ranks.push_back(Json::parse(text));
  }
  return ranks.dump(2) + "\n";
}

}  // namespace sherd
