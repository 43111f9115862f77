#include "apps/run_file.h"

#include <fmt/format.h>

#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/config/show.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

std::string memory_json(const DeviceMemory& memory) {
  std::vector<std::string> sizes;
  for (const std::int64_t bytes : memory.sizes()) sizes.push_back(fmt::format("\"{}\"", bytes));
  return fmt::format("[{}]", fmt::join(sizes, ","));
}

}  // namespace

std::string changed_run_file(const RunSource& source, const std::vector<std::string>& changes,
                             const DeviceMemory& memory) {
  std::vector<std::string> overrides = source.overrides;
  overrides.insert(overrides.end(), changes.begin(), changes.end());
  overrides.push_back("placement.memory=" + memory_json(memory));
  LoadedConfig config = load_run_config(source.path, overrides, source.deepspeed);
  resolve_for_world(config, memory.world());
  if (memory.kind() == DeviceKind::cuda) config.run.device = DeviceChoice::cuda;
  place_run(config.run, build_model(config.run.model), memory.world(), memory.per_rank());
  record_placement(config, memory.size_per_rank());
  return config_json(config);
}

}  // namespace sherd
