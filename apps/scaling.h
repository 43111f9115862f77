#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/run_config.h"

namespace sherd {

/// The largest model of a run's shape that fits.
struct LargestModel {
  int ranks = 1;
  std::int64_t memory_bytes = 0;  ///< of each rank
  int stage = 0;
  std::int64_t parameters = 0;  ///< 0: not even the smallest fits
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  ModelConfig model{};
};

/// A model of as many layers, and `width` in steps of the narrowest one with the same heads per key
/// and value head; a step of an mlp is an eighth of its hidden layers, which keep their number.
ModelConfig scaled_model(const ModelConfig& model, std::int64_t layers, std::int64_t width);
/// The steps that the model itself has.
std::int64_t width_steps(const ModelConfig& model);

/// The largest model for `ranks` ranks of `memory_bytes` each at a stage, at the run's micro-batch,
/// one a rank: layers are added up to kMostLayers, then width, or a little more width and fewer
/// layers, whichever is larger. A run whose model is too large is made flatter, then narrower. What
/// is left goes into wider feed-forward layers.
LargestModel find_largest_model(const RunConfig& run, int ranks, std::int64_t memory_bytes,
                                int stage);

/// The settings of a run of this model, as key=JSON, over those of the run that it was found for.
std::vector<std::string> changes_for(const LargestModel& found, const RunConfig& run);

/// The largest models by ranks (1, 2, 4 … up to `most_ranks`), memory and stage.
std::vector<LargestModel> find_largest_models(const RunConfig& run, int most_ranks,
                                              std::span<const std::int64_t> memories);
inline constexpr std::int64_t kMostLayers = 128;

/// A table for each memory: ranks down, stages across.
std::string scaling_table(std::span<const LargestModel> models);
/// The same as a picture, both axes logarithmic: a panel for each memory, a line for each stage.
std::string scaling_svg(std::span<const LargestModel> models, const std::string& title);

}  // namespace sherd
