#include "optim/optimizer.h"

#include <cmath>

#include "core/error.h"
#include "kernels/adamw.h"
#include "kernels/sgd.h"
#include "optim/spec_check.h"

namespace sherd {
namespace {

using Type = OptimizerSpec::Type;

double bias_correction(const OptimizerSpec& spec, double beta, std::int64_t step) {
  return spec.bias_correction ? 1.0 - std::pow(beta, static_cast<double>(step + 1)) : 1.0;
}

}  // namespace

void validate(const OptimizerSpec& spec) {
  require_not_negative(spec.lr, "optimizer lr");
  require_not_negative(spec.weight_decay, "optimizer weight_decay");
  if (spec.type != Type::sgd) {
    require_not_negative(spec.epsilon, "optimizer eps");
    require_beta(spec.beta1, "optimizer beta1");
    require_beta(spec.beta2, "optimizer beta2");
    return;
  }
  require_not_negative(spec.momentum, "optimizer momentum");
  require(std::isfinite(spec.dampening), "optimizer dampening is a number, got {}", spec.dampening);
  require(!spec.nesterov || (spec.momentum > 0.0 && spec.dampening == 0.0),
          "optimizer nesterov needs a momentum above 0 and dampening 0, got momentum {}, dampening "
          "{}",
          spec.momentum, spec.dampening);
}

std::vector<StateTensor> optimizer_state(const OptimizerSpec& spec) {
  if (spec.type != Type::sgd) return {{"exp_avg"}, {"exp_avg_sq"}};
  if (spec.momentum != 0.0) return {{"momentum_buffer"}};
  return {};
}

UpdateScalars update_scalars(const OptimizerSpec& spec, const ScheduledStep& scheduled,
                             std::int64_t step, double gradient_scale, bool apply) {
  const Betas betas = scheduled.betas.value_or(Betas{spec.beta1, spec.beta2});
  return {.lr = scheduled.lr,
          .gradient_scale = gradient_scale,
          .beta1 = betas.beta1,
          .beta2 = betas.beta2,
          .bias_correction1 = bias_correction(spec, betas.beta1, step),
          .bias_correction2 = bias_correction(spec, betas.beta2, step),
          .first_step = step == 0 ? 1 : 0,
          .apply = apply ? 1 : 0};
}

void update_parameters(const OptimizerSpec& spec, const MasterParameters& parameters,
                       const Tensor& gradient, std::span<const Tensor> state,
                       std::span<const DecaySegment> segments, const UpdateScalars* scalars,
                       Stream& stream) {
  const auto wanted = optimizer_state(spec);
  require(state.size() == wanted.size(), "the optimizer keeps {} state tensors, got {}",
          wanted.size(), state.size());
  const int count = static_cast<int>(segments.size());
  if (spec.type == Type::sgd) {
    sgd_update(parameters, gradient, state.empty() ? Tensor{} : state[0], segments.data(), count,
               {spec.momentum, spec.dampening, spec.nesterov}, scalars, stream);
  } else {
    adamw_update(parameters, gradient, state[0], state[1], segments.data(), count,
                 {spec.epsilon, spec.type == Type::adamw}, scalars, stream);
  }
}

}  // namespace sherd
