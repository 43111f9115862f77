#include "apps/run_file.h"

#include <fmt/format.h>

#include "models/build.h"
#include "runtime/config/load.h"
#include "runtime/config/show.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

std::string memory_json(const DeviceMemory& memory, int world) {
  std::vector<std::string> sizes;
  for (const std::int64_t bytes : memory.per_rank(memory.is_same_for_all() ? 1 : world)) {
    sizes.push_back(fmt::format("\"{}\"", bytes));
  }
  return fmt::format("[{}]", fmt::join(sizes, ","));
}

}  // namespace

std::string changed_run_file(const RunSource& source, const std::vector<std::string>& changes,
                             int ranks, const DeviceMemory& memory) {
  std::vector<std::string> overrides = source.overrides;
  overrides.insert(overrides.end(), changes.begin(), changes.end());
  overrides.push_back("placement.memory=" + memory_json(memory, ranks));
  LoadedConfig config = load_run_config(source.path, overrides, source.deepspeed);
  resolve_for_world(config, ranks);
  const std::vector<std::int64_t> sizes = memory.per_rank(ranks);
  place_run(config.run, build_model(config.run.model), ranks, sizes);
  record_placement(config, sizes);
  return config_json(config);
}

}  // namespace sherd
