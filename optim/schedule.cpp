#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "optim/one_cycle.h"
#include "optim/spec_check.h"

namespace sherd {
namespace {

using Type = ScheduleSpec::Type;

double to_double(std::int64_t n) { return static_cast<double>(n); }

/// From 1 at progress 0 to 0 at progress 1.
double half_cosine(double progress) { return (1.0 + std::cos(std::numbers::pi * progress)) / 2.0; }

/// constant, linear and cosine.
double plain_rate(const ScheduleSpec& spec, double base_lr, std::int64_t step) {
  const std::int64_t warmup = spec.warmup_num_steps;
  if (step < warmup) return base_lr * to_double(step + 1) / to_double(warmup + 1);
  if (spec.type == Type::constant) return base_lr;
  const std::int64_t length = std::max<std::int64_t>(1, spec.total_num_steps - warmup);
  const double progress = std::min(1.0, to_double(step - warmup) / to_double(length));
  const double left = spec.type == Type::linear ? 1.0 - progress : half_cosine(progress);
  return spec.min_lr + (base_lr - spec.min_lr) * left;
}

// DeepSpeed's warm-ups; `iteration` is its last_batch_iteration. Its log warm-up divides by
// log(steps), so it takes at least two.
std::int64_t warmup_steps(const ScheduleSpec& spec) {
  return std::max<std::int64_t>(2, spec.warmup_num_steps);
}

double warmup_share(const ScheduleSpec& spec, std::int64_t iteration) {
  const double steps = to_double(warmup_steps(spec));
  if (!spec.warmup_log) return to_double(iteration) / steps;
  return 1.0 / std::log(steps) * std::log(to_double(iteration + 1));
}

double decayed_share(const ScheduleSpec& spec, std::int64_t iteration) {
  if (spec.type == Type::warmup_lr) return 1.0;
  const double left = to_double(spec.total_num_steps - iteration);
  return std::max(0.0, left / std::max(1.0, to_double(spec.total_num_steps - warmup_steps(spec))));
}

double warmup_rate(const ScheduleSpec& spec, std::int64_t step) {
  if (step == 0) return spec.warmup_min_lr;
  const std::int64_t iteration = step - 1;
  const double share = iteration < warmup_steps(spec) ? warmup_share(spec, iteration)
                                                      : decayed_share(spec, iteration);
  return spec.warmup_min_lr + (spec.warmup_max_lr - spec.warmup_min_lr) * share;
}

double warmup_cosine_ratio(const ScheduleSpec& spec, std::int64_t step) {
  if (step == 0) return 0.0;
  const std::int64_t iteration = step - 1;
  const std::int64_t warmup = warmup_steps(spec);
  if (iteration < warmup) {
    return spec.warmup_min_ratio + warmup_share(spec, iteration) * (1.0 - spec.warmup_min_ratio);
  }
  const double length = to_double(std::max<std::int64_t>(1, spec.total_num_steps - warmup));
  const double progress = std::min(1.0, to_double(iteration - warmup + 1) / length);
  return std::max(0.0, spec.cos_min_ratio + (1.0 - spec.cos_min_ratio) * half_cosine(progress));
}

bool has_end(Type type) {
  return type == Type::linear || type == Type::cosine || type == Type::warmup_decay_lr ||
         type == Type::warmup_cosine_lr;
}

}  // namespace

void validate(const ScheduleSpec& spec) {
  if (spec.type == Type::one_cycle) return validate_one_cycle(spec);
  require(spec.warmup_num_steps >= 0, "scheduler warmup_num_steps is at least 0, got {}",
          spec.warmup_num_steps);
  if (has_end(spec.type)) {
    require(
        spec.total_num_steps >= 1 && spec.total_num_steps >= spec.warmup_num_steps,
        "scheduler total_num_steps is at least 1 and no less than warmup_num_steps ({}), got {}",
        spec.warmup_num_steps, spec.total_num_steps);
  }
  require_not_negative(spec.min_lr, "scheduler min_lr");
  require_not_negative(spec.warmup_min_lr, "scheduler warmup_min_lr");
  require_not_negative(spec.warmup_max_lr, "scheduler warmup_max_lr");
  require_ratio(spec.warmup_min_ratio, "scheduler warmup_min_ratio");
  require_ratio(spec.cos_min_ratio, "scheduler cos_min_ratio");
}

ScheduledStep scheduled_step(const ScheduleSpec& spec, double base_lr, std::int64_t step) {
  require(step >= 0, "a schedule's steps count from 0, got {}", step);
  switch (spec.type) {
    case Type::constant:
    case Type::linear:
    case Type::cosine:
      return {plain_rate(spec, base_lr, step), std::nullopt};
    case Type::warmup_lr:
    case Type::warmup_decay_lr:
      return {warmup_rate(spec, step), std::nullopt};
    case Type::warmup_cosine_lr:
      return {base_lr * warmup_cosine_ratio(spec, step), std::nullopt};
    case Type::one_cycle:
      return one_cycle_step(spec, step);
  }
  throw ArgumentError("unknown schedule type");
}

}  // namespace sherd
