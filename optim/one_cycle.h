#pragma once

#include <cstdint>

#include "optim/schedule.h"

namespace sherd {

/// DeepSpeed's OneCycle (after Smith 2018, "A disciplined approach to neural network
/// hyper-parameters"): the rate goes up from cycle_min_lr to cycle_max_lr and back, once, while
/// beta1 goes down and back; then both decay, or stay.
void validate_one_cycle(const ScheduleSpec& spec);
ScheduledStep one_cycle_step(const ScheduleSpec& spec, std::int64_t step);

}  // namespace sherd
