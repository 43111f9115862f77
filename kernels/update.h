#pragma once

#include <cstdint>

namespace sherd {

/// What an update needs to know of its step. Lives in device memory: written by the step itself, so
/// that the host never waits for it.
struct UpdateScalars {
  double lr = 0.0;
  double gradient_scale = 1.0;  ///< multiplies every gradient: clip factor / loss scale, token mean
  double beta1 = 0.9;           ///< here and not in a spec, since OneCycle moves them
  double beta2 = 0.999;
  double bias_correction1 = 1.0;  ///< 1 - beta1^t, or 1
  double bias_correction2 = 1.0;  ///< 1 - beta2^t, or 1
  std::int32_t first_step = 0;    ///< 1: no step was applied before; SGD's momentum starts here
  std::int32_t apply = 1;         ///< 0: the step is skipped and nothing is written
};

/// Elements [previous end, end) of a flat shard decay with `weight_decay`.
struct DecaySegment {
  std::int64_t end = 0;
  double weight_decay = 0.0;
};

}  // namespace sherd
