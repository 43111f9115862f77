#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/batch.h"
#include "runtime/config/fates.h"
#include "runtime/config/resolve.h"
#include "runtime/config/run_config.h"
#include "runtime/config/settings.h"

namespace sherd {

/// A run file, resolved, with the origin of every value.
struct LoadedConfig {
  RunConfig run;                   ///< `run.batch` is empty until resolve_for_world
  Settings settings;               ///< every value that was given, taken by default or derived
  std::vector<KeyFate> deepspeed;  ///< the DeepSpeed keys that were given
  /// What a person should read at the start: keys that are approximated or have no effect, unknown
  /// members of a model folder's config.json, an uneven batch.
  std::vector<std::string> notes;
};

/// Reads a run file, a DeepSpeed file beside it (or "") and `--set` assignments, which win. A key
/// that both files give differently is an error. Throws ArgumentError.
LoadedConfig load_run_config(const std::string& path,
                             const std::vector<std::string>& overrides = {},
                             const std::string& deepspeed_path = {});

/// The same for text in memory; `source` is what errors call it.
LoadedConfig parse_run_config(std::string_view text, const std::string& source,
                              const std::vector<std::string>& overrides = {},
                              const std::string& deepspeed_path = {});

/// Completes what depends on the number of ranks: batch, weights, groups. May be called again for
/// another number. Throws ArgumentError.
void resolve_for_world(LoadedConfig& config, int world);

/// Writes down what was found for the memory of each rank: the batch keys that follow, and who
/// carries what.
void record_placement(LoadedConfig& config, std::span<const std::int64_t> memory);

/// Throws ArgumentError when something is missing that only training needs: steps, data, an end of
/// the schedule.
void require_trainable(const LoadedConfig& config);

/// The model of a Hugging Face folder.
ModelConfig load_model_config(const std::string& folder, ModelUse use);

/// What becomes of each key of a DeepSpeed file; refused keys are listed, not thrown.
std::vector<KeyFate> import_deepspeed(const std::string& path);

}  // namespace sherd
