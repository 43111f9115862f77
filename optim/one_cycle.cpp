#include "optim/one_cycle.h"

#include <cmath>

#include "core/error.h"

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

double cycled_beta1(const ScheduleSpec& spec, std::int64_t step) {
  if (step == 0) return spec.cycle_min_mom;  // what DeepSpeed's constructor sets
  const std::int64_t total = total_size(spec);
  if (step <= total) {
    return spec.cycle_max_mom - (spec.cycle_max_mom - spec.cycle_min_mom) * height(spec, step);
  }
  if (spec.decay_step_size == 0) return spec.cycle_max_mom;
  const double intervals =
      static_cast<double>(step - total) / static_cast<double>(spec.decay_step_size);
  const double beta1 = spec.cycle_max_mom * (1.0 + spec.decay_mom_rate * intervals);
  require(beta1 < 1.0,
          "OneCycle's decay_mom_rate {} has taken beta1 from cycle_max_mom {} to {} at step {}; a "
          "beta is below 1",
          spec.decay_mom_rate, spec.cycle_max_mom, beta1, step);
  return beta1;
}

double cycled_rate(const ScheduleSpec& spec, std::int64_t step) {
  const std::int64_t total = total_size(spec);
  if (step <= total) {
    return spec.cycle_min_lr + (spec.cycle_max_lr - spec.cycle_min_lr) * height(spec, step);
  }
  if (spec.decay_step_size == 0) return spec.cycle_min_lr;
  const double intervals =
      static_cast<double>(step - total) / static_cast<double>(spec.decay_step_size);
  return spec.cycle_min_lr / (1.0 + spec.decay_lr_rate * intervals);
}

void require_beta(double value, const char* key) {
  require(value >= 0.0 && value < 1.0, "scheduler {} is at least 0 and below 1, got {}", key,
          value);
}

void require_not_negative(double value, const char* key) {
  require(value >= 0.0 && std::isfinite(value), "scheduler {} is a number of at least 0, got {}",
          key, value);
}

}  // namespace

void validate_one_cycle(const ScheduleSpec& spec) {
  require(spec.cycle_first_step_size >= 1, "scheduler cycle_first_step_size is at least 1, got {}",
          spec.cycle_first_step_size);
  require_not_negative(static_cast<double>(spec.cycle_second_step_size), "cycle_second_step_size");
  require_not_negative(static_cast<double>(spec.cycle_first_stair_count),
                       "cycle_first_stair_count");
  require_not_negative(static_cast<double>(spec.cycle_second_stair_count),
                       "cycle_second_stair_count");
  require_not_negative(static_cast<double>(spec.decay_step_size), "decay_step_size");
  require_not_negative(spec.cycle_min_lr, "cycle_min_lr");
  require_not_negative(spec.cycle_max_lr, "cycle_max_lr");
  require_not_negative(spec.decay_lr_rate, "decay_lr_rate");
  require_not_negative(spec.decay_mom_rate, "decay_mom_rate");
  require_beta(spec.cycle_min_mom, "cycle_min_mom");
  require_beta(spec.cycle_max_mom, "cycle_max_mom");
}

ScheduledStep one_cycle_step(const ScheduleSpec& spec, std::int64_t step) {
  ScheduledStep result{cycled_rate(spec, step), std::nullopt};
  if (spec.cycle_momentum) result.betas = Betas{cycled_beta1(spec, step), kBeta2};
  return result;
}

}  // namespace sherd
