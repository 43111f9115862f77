#pragma once

#include <cstdint>
#include <optional>

namespace sherd {

/// How the learning rate follows the steps. Keys carry DeepSpeed's names, and so do their meanings.
struct ScheduleSpec {
  enum class Type {
    constant,          ///< the optimizer's rate, after an optional linear warm-up
    linear,            ///< … then in a straight line to min_lr at step total_num_steps
    cosine,            ///< … then by half a cosine to min_lr at step total_num_steps
    warmup_lr,         ///< DeepSpeed's WarmupLR
    warmup_decay_lr,   ///< DeepSpeed's WarmupDecayLR
    warmup_cosine_lr,  ///< DeepSpeed's WarmupCosineLR: ratios of the optimizer's rate
    one_cycle,         ///< DeepSpeed's OneCycle: rate, and Adam's betas against it
  };
  Type type = Type::constant;
  std::int64_t warmup_num_steps = 0;  ///< DeepSpeed's types make it at least 2
  std::int64_t total_num_steps = 0;
  double warmup_min_lr = 0.0;  ///< warmup_lr, warmup_decay_lr: where they start …
  double warmup_max_lr = 0.0;  ///< … and what they reach
  bool warmup_log = true;      ///< warmup_type "log", else "linear"; DeepSpeed's types only
  double warmup_min_ratio = 0.0;
  double cos_min_ratio = 1e-4;
  double min_lr = 0.0;  ///< linear, cosine: where they end
  // OneCycle
  double cycle_min_lr = 0.0;
  double cycle_max_lr = 0.0;
  double decay_lr_rate = 0.0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 0;  ///< 0: as the first
  std::int64_t cycle_first_stair_count = 0;
  std::int64_t cycle_second_stair_count = 0;  ///< DeepSpeed's default is the first's
  std::int64_t decay_step_size = 0;
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0.0;
};

/// Adam's decay rates of the two moments.
struct Betas {
  double beta1 = 0.9;
  double beta2 = 0.999;
};

/// What a schedule says for one step; `betas` only where the schedule moves them (OneCycle).
struct ScheduledStep {
  double lr = 0.0;
  std::optional<Betas> betas;
};

/// Throws ArgumentError that names the key when `spec` can't be followed.
void validate(const ScheduleSpec& spec);

/// The values of step `step`, counted from 0 over applied steps (a skipped step doesn't count).
/// `base_lr` is the optimizer's rate. A pure function, so resuming needs nothing but the step.
///
/// constant, linear, cosine: warm-up step s has (s + 1) / (warmup_num_steps + 1) of the rate; the
/// descent starts at step warmup_num_steps with the whole rate.
///
/// DeepSpeed moves its schedules after a step: step 0 runs with what the constructor sets (WarmupLR
/// and WarmupDecayLR warmup_min_lr, WarmupCosineLR 0, OneCycle cycle_min_lr and cycle_min_mom), and
/// step s with the schedule's iteration s - 1. The same holds here. OneCycle sets beta2 to 0.99.
/// Throws ArgumentError where decay_mom_rate has taken beta1 to 1.
ScheduledStep scheduled_step(const ScheduleSpec& spec, double base_lr, std::int64_t step);

}  // namespace sherd
