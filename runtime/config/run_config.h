#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "runtime/config/model_config.h"

namespace sherd {

struct DataConfig {
  std::string train;  ///< file, glob, or empty with format "synthetic"
  std::string validation;  ///< own file or glob; else validation_fraction of train
  enum class Format { bytes, llmc, nanogpt, csv, npy, synthetic } format = Format::bytes;
  std::int64_t sequence_length = 1024;
  double validation_fraction = 0.0;
  std::int64_t samples = 0;  ///< synthetic: how many
  bool shuffle = true;
};

struct OptimizerConfig {
  enum class Type { adamw, adam, sgd } type = Type::adamw;  ///< adam: adam_w_mode false
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool bias_correction = true;
  bool decay_all = false;  ///< decay norms and biases too
  double momentum = 0.0;   ///< sgd
  double dampening = 0.0;
  bool nesterov = false;
};

struct ScheduleConfig {
  enum class Type { constant, linear, cosine, warmup_lr, warmup_decay_lr, warmup_cosine_lr, one_cycle };
  Type type = Type::constant;
  std::int64_t warmup_num_steps = 0;
  std::int64_t total_num_steps = 0;
  double warmup_min_lr = 0.0;
  double warmup_max_lr = 0.0;
  bool warmup_log = true;          ///< warmup_type "log", else "linear"
  double warmup_min_ratio = 0.0;
  double cos_min_ratio = 1e-4;
  double min_lr = 0.0;             ///< linear, cosine: where they end
  // OneCycle
  double cycle_min_lr = 0.0;
  double cycle_max_lr = 0.0;
  double decay_lr_rate = 0.0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 0;  ///< 0: as the first
  std::int64_t cycle_first_stair_count = 0;
  std::int64_t cycle_second_stair_count = 0;
  std::int64_t decay_step_size = 0;
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0.0;
};

struct LossScaleConfig {
  double loss_scale = 0.0;  ///< 0: dynamic
  int initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;
  int hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1.0;
};

/// Samples per step and how ranks share them: `train` samples are cut into micro-batches of at most
/// `micro` that differ by at most one sample, and those are dealt to the ranks in order, as evenly as
/// they go. The cut does not depend on the number of ranks.
struct BatchConfig {
  std::int64_t train = 0;
  std::int64_t micro = 0;
  std::int64_t accumulation = 0;  ///< rounds per step: the most micro-batches that any rank has
};

struct ZeroConfig {
  int stage = 0;
  int shard_group_size = 0;          ///< 0: all ranks
  int prefetch_units = 1;            ///< gathers in flight ahead of their use
  int gather_burst = 1;
  int reduce_burst = 1;
  bool reshard_after_forward = true;
  bool overlap = true;               ///< false: every collective is waited for at once
};

struct PlacementConfig {
  std::vector<double> shard_weights;  ///< one per rank; empty: even
  std::vector<double> batch_weights;
};

struct CheckpointConfig {
  std::int64_t every = 0;
  int keep_last = 2;
};

/// A whole run, every value resolved. Made by `load_run_config`; plain values, no behaviour.
struct RunConfig {
  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  LossScaleConfig loss_scale;
  BatchConfig batch;
  ZeroConfig zero;
  PlacementConfig placement;
  CheckpointConfig checkpoint;
  std::string output = "runs/run";
  std::int64_t steps = 0;
  std::uint64_t seed = 1;
  double gradient_clipping = 0.0;  ///< 0: none
  DType compute = DType::f32;      ///< bf16.enabled, fp16.enabled
  std::optional<DType> wire;       ///< communication_data_type
  bool exact = false;              ///< "reduction": "exact"
  bool recompute = false;          ///< activation checkpointing of every block
  int skip_limit = 100;            ///< skipped steps in a row that end the run
  std::int64_t validate_every = 0;  ///< steps; 0: only at the end when there is validation data
  std::int64_t validation_batches = 0;  ///< 0: all
  std::int64_t log_every = 1;
  int threads = 0;                 ///< OpenMP threads per rank; 0: cores over local ranks
};

}  // namespace sherd
