#include "optim/one_cycle.h"

#include <cmath>

#include "core/error.h"
#include "optim/spec_check.h"

namespace sherd {
namespace {

constexpr double kBeta2 = 0.99;  // DeepSpeed sets it and has no key for it

std::int64_t second_size(const ScheduleSpec& spec) {
  return spec.cycle_second_step_size > 0 ? spec.cycle_second_step_size : spec.cycle_first_step_size;
}

std::int64_t total_size(const ScheduleSpec& spec) {
  return spec.cycle_first_step_size + second_size(spec);
}

/// How far from the minimum towards the maximum step `step` of the cycle is, 0 to 1. Stairs are cut
/// from the integer step: a quotient just below a stair would fall a whole stair short.
double height(const ScheduleSpec& spec, std::int64_t step) {
  const auto total = static_cast<double>(total_size(spec));
  const auto first = static_cast<double>(spec.cycle_first_step_size);
  const auto second = static_cast<double>(second_size(spec));
  const auto at = static_cast<double>(step % total_size(spec));
  const bool rising = at <= first;
  const std::int64_t stairs = rising ? spec.cycle_first_stair_count : spec.cycle_second_stair_count;
  if (stairs == 0) return rising ? at / first : (total - at) / second;
  const auto count = static_cast<double>(stairs);
  return std::floor(rising ? at * count / first : (total - at) * count / second) / count;
}

/// Intervals of decay since the cycle ended.
double decay_intervals(const ScheduleSpec& spec, std::int64_t step) {
  if (spec.decay_step_size == 0) return 0.0;
  return static_cast<double>(step - total_size(spec)) / static_cast<double>(spec.decay_step_size);
}

double cycled_beta1(const ScheduleSpec& spec, std::int64_t step) {
  if (step == 0) return spec.cycle_min_mom;  // what DeepSpeed's constructor sets
  if (step <= total_size(spec)) {
    return spec.cycle_max_mom - (spec.cycle_max_mom - spec.cycle_min_mom) * height(spec, step);
  }
  const double beta1 =
      spec.cycle_max_mom * (1.0 + spec.decay_mom_rate * decay_intervals(spec, step));
  require(beta1 < 1.0,
          "OneCycle's decay_mom_rate {} has taken beta1 from cycle_max_mom {} to {} at step {}; a "
          "beta is below 1",
          spec.decay_mom_rate, spec.cycle_max_mom, beta1, step);
  return beta1;
}

double cycled_rate(const ScheduleSpec& spec, std::int64_t step) {
  if (step <= total_size(spec)) {
    return spec.cycle_min_lr + (spec.cycle_max_lr - spec.cycle_min_lr) * height(spec, step);
  }
  return spec.cycle_min_lr / (1.0 + spec.decay_lr_rate * decay_intervals(spec, step));
}

}  // namespace

void validate_one_cycle(const ScheduleSpec& spec) {
  require(spec.cycle_first_step_size >= 1, "scheduler cycle_first_step_size is at least 1, got {}",
          spec.cycle_first_step_size);
  require_not_negative(static_cast<double>(spec.cycle_second_step_size),
                       "scheduler cycle_second_step_size");
  require_not_negative(static_cast<double>(spec.cycle_first_stair_count),
                       "scheduler cycle_first_stair_count");
  require_not_negative(static_cast<double>(spec.cycle_second_stair_count),
                       "scheduler cycle_second_stair_count");
  require_not_negative(static_cast<double>(spec.decay_step_size), "scheduler decay_step_size");
  require_not_negative(spec.cycle_min_lr, "scheduler cycle_min_lr");
  require_not_negative(spec.cycle_max_lr, "scheduler cycle_max_lr");
  require_not_negative(spec.decay_lr_rate, "scheduler decay_lr_rate");
  require_not_negative(spec.decay_mom_rate, "scheduler decay_mom_rate");
  require_beta(spec.cycle_min_mom, "scheduler cycle_min_mom");
  require_beta(spec.cycle_max_mom, "scheduler cycle_max_mom");
}

ScheduledStep one_cycle_step(const ScheduleSpec& spec, std::int64_t step) {
  ScheduledStep result{cycled_rate(spec, step), std::nullopt};
  if (spec.cycle_momentum) result.betas = Betas{cycled_beta1(spec, step), kBeta2};
  return result;
}

}  // namespace sherd
