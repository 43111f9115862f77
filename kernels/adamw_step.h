#pragma once

#include <cmath>

#include "kernels/adamw.h"
#include "kernels/host_device.h"

namespace sherd {

/// The scalars of one step as the inner loop wants them: rounded once, from double.
struct AdamWFactors {
  float gradient_scale, new1, beta2, new2, inverse_root2, epsilon, step_size;
};
/// The same of one decay segment.
struct AdamWDecay {
  float keep, l2;
};

SHERD_HOST_DEVICE inline AdamWFactors adamw_factors(const AdamWSpec& spec, const UpdateScalars& s) {
  return {.gradient_scale = static_cast<float>(s.gradient_scale),
          .new1 = static_cast<float>(1.0 - s.beta1),
          .beta2 = static_cast<float>(s.beta2),
          .new2 = static_cast<float>(1.0 - s.beta2),
          .inverse_root2 = static_cast<float>(1.0 / std::sqrt(s.bias_correction2)),
          .epsilon = static_cast<float>(spec.epsilon),
          .step_size = static_cast<float>(s.lr / s.bias_correction1)};
}

SHERD_HOST_DEVICE inline AdamWDecay adamw_decay(const AdamWSpec& spec, const UpdateScalars& s,
                                                double weight_decay) {
  if (spec.decoupled_decay) return {static_cast<float>(1.0 - s.lr * weight_decay), 0.0f};
  return {1.0f, static_cast<float>(weight_decay)};
}

/// Moves the moments m and v of one element; returns its new master, before which it was w.
SHERD_HOST_DEVICE inline float adamw_element(const AdamWFactors& f, const AdamWDecay& decay,
                                             float gradient, float w, float& m, float& v) {
  const float g = gradient * f.gradient_scale + decay.l2 * w;
  m += f.new1 * (g - m);
  v = f.beta2 * v + f.new2 * (g * g);
  const float denominator = std::sqrt(v) * f.inverse_root2 + f.epsilon;
  return decay.keep * w - f.step_size * (m / denominator);
}

}  // namespace sherd
