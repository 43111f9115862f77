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
};

/// A model of as many layers, and `width` in steps of the narrowest one with the same heads per key
/// and value head; a step of an mlp is an eighth of its hidden layers, which keep their number.
ModelConfig scaled_model(const ModelConfig& model, std::int64_t layers, std::int64_t width);
/// The steps that the model itself has.
std::int64_t width_steps(const ModelConfig& model);

/// The largest models by ranks (1, 2, 4 … up to `most_ranks`), memory and stage, at the run's
/// micro-batch, one a rank: layers are added up to kMostLayers, then width. A run whose model is
/// too large is made flatter, then narrower.
std::vector<LargestModel> find_largest_models(const RunConfig& run, int most_ranks,
                                              std::span<const std::int64_t> memories);
inline constexpr std::int64_t kMostLayers = 128;

/// A table for each memory: ranks down, stages across.
std::string scaling_table(std::span<const LargestModel> models);
/// The same as a picture, both axes logarithmic: a panel for each memory, a line for each stage.
std::string scaling_svg(std::span<const LargestModel> models, const std::string& title);

}  // namespace sherd
