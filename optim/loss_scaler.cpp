#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace sherd {
namespace {

constexpr double kFactor = 2.0;

bool is_dynamic(const LossScalerSpec& spec) { return spec.loss_scale == 0.0; }

}  // namespace

void validate(const LossScalerSpec& spec) {
  constexpr int kMaxPower = 126;  // the scale is a finite float, and so is twice it
  require(spec.loss_scale >= 0.0 && spec.loss_scale <= std::ldexp(1.0, kMaxPower),
          "fp16 loss_scale is between 0 (dynamic) and 2^{}, got {}", kMaxPower, spec.loss_scale);
  require(spec.initial_scale_power >= 0 && spec.initial_scale_power <= kMaxPower,
          "fp16 initial_scale_power is between 0 and {}, got {}", kMaxPower,
          spec.initial_scale_power);
  require(spec.loss_scale_window >= 1, "fp16 loss_scale_window is at least 1, got {}",
          spec.loss_scale_window);
  require(spec.hysteresis >= 1, "fp16 hysteresis is at least 1, got {}", spec.hysteresis);
  const double initial = std::ldexp(1.0, spec.initial_scale_power);
  require(spec.min_loss_scale > 0.0 && (!is_dynamic(spec) || spec.min_loss_scale <= initial),
          "fp16 min_loss_scale is above 0 and no more than the initial scale {}, got {}", initial,
          spec.min_loss_scale);
}

LossScaler::LossScaler(const LossScalerSpec& spec) : spec_(spec) {
  validate(spec);
  state_.scale = is_dynamic(spec) ? std::ldexp(1.0, spec.initial_scale_power) : spec.loss_scale;
  state_.hysteresis = spec.hysteresis;
}

void LossScaler::update(bool overflow) {
  if (is_dynamic(spec_)) {
    if (overflow) {
      overflowed();
    } else {
      succeeded();
    }
  }
  ++state_.step;
}

void LossScaler::overflowed() {
  if (state_.hysteresis > 1) {
    --state_.hysteresis;
  } else if (state_.scale <= spec_.min_loss_scale) {
    throw NonFiniteError(fmt::format(
        "gradients are not finite, and the loss scale is at its minimum {} (fp16 min_loss_scale) "
        "and can't fall further; lower the learning rate, clip gradients, or train in bf16",
        state_.scale));
  } else {
    state_.scale = std::max(state_.scale / kFactor, spec_.min_loss_scale);
  }
  state_.last_overflow = state_.step;
}

void LossScaler::succeeded() {
  const std::int64_t clean_before = state_.step - state_.last_overflow - 1;
  const bool grows = clean_before > 0 && clean_before % spec_.loss_scale_window == 0;
  if (grows || spec_.consecutive_hysteresis) state_.hysteresis = spec_.hysteresis;
  if (grows) state_.scale *= kFactor;
}

void LossScaler::restore(const State& state) {
  const double scale = is_dynamic(spec_) ? state.scale : state_.scale;
  const bool was_seen =
      state.last_overflow >= -1 && state.last_overflow < std::max<std::int64_t>(state.step, 0);
  require(
      scale > 0.0 && std::isfinite(scale) && state.hysteresis >= 1 && state.step >= 0 && was_seen,
      "a loss scaler can't go on from scale {}, hysteresis {}, step {}, last overflow {}",
      state.scale, state.hysteresis, state.step, state.last_overflow);
  state_ = state;
  state_.scale = scale;
  state_.hysteresis = std::min(state.hysteresis, spec_.hysteresis);
}

}  // namespace sherd
