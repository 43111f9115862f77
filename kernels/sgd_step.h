#pragma once

#include "kernels/host_device.h"
#include "kernels/sgd.h"

namespace sherd {

/// buffer = keep * buffer + take * g, or g at first; the direction is ahead * g + lookahead *
/// buffer.
struct SgdFactors {
  bool first_step;
  float gradient_scale, keep, take, ahead, lookahead, lr;
};

SHERD_HOST_DEVICE inline SgdFactors sgd_factors(const SgdSpec& spec, const UpdateScalars& s) {
  return {.first_step = s.first_step != 0,
          .gradient_scale = static_cast<float>(s.gradient_scale),
          .keep = static_cast<float>(spec.momentum),
          .take = static_cast<float>(1.0 - spec.dampening),
          .ahead = spec.nesterov ? 1.0f : 0.0f,
          .lookahead = spec.nesterov ? static_cast<float>(spec.momentum) : 1.0f,
          .lr = static_cast<float>(s.lr)};
}

/// The new master of one element without momentum; w is the old one.
SHERD_HOST_DEVICE inline float sgd_element(const SgdFactors& f, float decay, float gradient,
                                           float w) {
  const float g = gradient * f.gradient_scale + decay * w;
  return w - f.lr * g;
}

/// The same with momentum, whose buffer moves.
SHERD_HOST_DEVICE inline float sgd_momentum_element(const SgdFactors& f, float decay,
                                                    float gradient, float w, float& buffer) {
  const float g = gradient * f.gradient_scale + decay * w;
  buffer = f.first_step ? g : f.keep * buffer + f.take * g;
  return w - f.lr * (f.ahead * g + f.lookahead * buffer);
}

}  // namespace sherd
