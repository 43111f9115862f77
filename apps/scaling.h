#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/device_sizes.h"
#include "runtime/config/run_config.h"

namespace sherd {

/// The largest model of a run's shape that fits.
struct LargestModel {
  int ranks = 1;
  std::int64_t memory_bytes = 0;  ///< what each rank's device holds, or the smallest one
  int stage = 0;
  std::int64_t parameters = 0;  ///< 0: not even the smallest fits
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  ModelConfig model{};
  std::vector<std::int64_t> sizes{};  ///< what the ranks' devices hold, where they differ
};

/// A model of as many layers, and `width` in steps of the narrowest one with the same heads per key
/// and value head; a step of an mlp is an eighth of its hidden layers, which keep their number.
ModelConfig scaled_model(const ModelConfig& model, std::int64_t layers, std::int64_t width);
/// The steps that the model itself has.
std::int64_t width_steps(const ModelConfig& model);

/// The largest model for these ranks at a stage, at the run's micro-batch, one a rank; where ranks
/// differ, shards go by memory. Layers are added up to kMostLayers, then width, or a little more
/// width and fewer layers, whichever is larger. A run whose model is too large is made flatter,
/// then narrower. What is left goes into wider feed-forward layers.
LargestModel find_largest_model(const RunConfig& run, const DeviceMemory& memory, int stage);

/// The settings of a run of this model, as key=JSON, over those of the run that it was found for.
std::vector<std::string> changes_for(const LargestModel& found, const RunConfig& run);

/// Whether sizes are those of each of `ranks` ranks, which differ, and not of worlds of equal ones.
bool are_of_ranks(std::span<const std::int64_t> sizes, int ranks);
/// The largest models by stage: of ranks that differ, for just those; else by number of ranks (1,
/// 2, 4 … up to `most_ranks`) and by size, each size once.
std::vector<LargestModel> find_largest_models(const RunConfig& run, int most_ranks,
                                              std::span<const std::int64_t> sizes,
                                              DeviceKind kind = DeviceKind::cpu);
/// "3.0 MiB a rank", or "ranks of 3.0 MiB, 4.0 MiB, shards by memory".
std::string sizes_text(const LargestModel& model);
inline constexpr std::int64_t kMostLayers = 128;

/// A table for each memory: ranks down, stages across.
std::string scaling_table(std::span<const LargestModel> models);
/// The same as a picture, both axes logarithmic: a panel for each memory, a line for each stage.
std::string scaling_svg(std::span<const LargestModel> models, const std::string& title);

}  // namespace sherd
