#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "runtime/config/model_config.h"
#include "runtime/data/data_config.h"

namespace sherd {

/// Samples per step and how ranks share them: `train` samples are cut into micro-batches of at most
/// `micro` that differ by at most one sample, and those are dealt to the ranks in order, as evenly
/// as they go. The cut does not depend on the number of ranks.
struct BatchConfig {
  std::int64_t train = 0;
  std::int64_t micro = 0;
  std::int64_t accumulation = 0;  ///< rounds per step: the most micro-batches that any rank has
};

struct ZeroConfig {
  int stage = 0;
  int shard_group_size = 0;  ///< 0: all ranks
  int prefetch_units = 1;    ///< gathers in flight ahead of their use
  int gather_burst = 1;
  int reduce_burst = 1;
  bool reshard_after_forward = true;
  bool overlap = true;  ///< false: every collective is waited for at once
  /// Limits in elements, from DeepSpeed's bucket sizes. Where given, they decide how many whole
  /// units are gathered ahead of their use (none, when the next one is larger) or reduced together
  /// (at least one).
  std::optional<std::int64_t> prefetch_elements;
  std::optional<std::int64_t> reduce_bucket_elements;
};

/// What decides how much of something a rank gets.
enum class PlaceBy {
  weights,
  memory,  ///< in proportion to the memory a rank has left
  fill,    ///< rank after rank, as much as it may take
  speed,   ///< samples only: in proportion to how fast ranks are
};

/// Who holds and computes how much. By memory or speed, `place_run` finds the counts.
struct PlacementConfig {
  PlaceBy shards = PlaceBy::weights;
  PlaceBy batch = PlaceBy::weights;
  std::vector<double> shard_weights;  ///< one per rank; empty: even
  std::vector<double> batch_weights;
  std::vector<std::int64_t> memory;  ///< bytes a rank may take, for all or each; empty: not given
  std::vector<double> speed;         ///< of each rank, where samples go by it; only ratios count
  std::optional<std::int64_t> most_samples;  ///< of a micro-batch that is sized by memory
  std::int64_t fewest_rounds = 1;            ///< of a step whose batch is dealt by memory

  // Found:
  /// Per flat buffer of the layout: elements that each rank of a shard group holds.
  std::vector<std::vector<std::int64_t>> shard_counts;
  std::vector<std::int64_t> rank_samples;  ///< samples of a step, per rank
  std::int64_t rounds = 1;                 ///< micro-batches that each rank cuts them into
};

struct CheckpointConfig {
  std::int64_t every = 0;
  int keep_last = 2;
  bool final_model = true;  ///< write the model at the end, and when the run is stopped
};

enum class DeviceChoice { automatic, cpu, cuda };

/// A whole run, every value resolved. Made by `load_run_config`; plain values, no behaviour.
struct RunConfig {
  ModelConfig model;
  DataConfig data;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  LossScalerSpec loss_scale;
  BatchConfig batch;
  ZeroConfig zero;
  PlacementConfig placement;
  CheckpointConfig checkpoint;
  std::string output = "runs/run";
  std::int64_t steps = 0;
  std::uint64_t seed = 1;
  double gradient_clipping = 0.0;       ///< 0: none
  DType compute = DType::f32;           ///< bf16.enabled, fp16.enabled
  std::optional<DType> wire;            ///< communication_data_type
  bool exact = false;                   ///< "reduction": "exact"
  bool recompute = false;               ///< activation checkpointing of every block
  std::int64_t recompute_units = 0;     ///< only so many units, from the first; 0: all
  int skip_limit = 100;                 ///< skipped steps in a row that end the run
  std::int64_t validate_every = 0;      ///< steps; 0: only at the end when there is validation data
  std::int64_t validation_batches = 0;  ///< 0: all
  std::int64_t log_every = 1;
  DeviceChoice device = DeviceChoice::automatic;
  bool share_gpus = false;       ///< whether several ranks may use one GPU
  bool record_steps = true;      ///< replay steps as CUDA graphs
  bool tune_products = true;     ///< choose algorithms of matrix products on GPUs by measurement
  double timeout_seconds = 300;  ///< for a late rank, and for operations that do not end
  int threads = 0;               ///< OpenMP threads per rank; 0: cores over local ranks
};

}  // namespace sherd
