#pragma once

#include <cstdint>

namespace sherd {

/// DeepSpeed's fp16 section.
struct LossScalerSpec {
  double loss_scale = 0.0;  ///< 0: dynamic; else this one, always
  int initial_scale_power = 16;
  std::int64_t loss_scale_window = 1000;  ///< clean steps in a row before the scale doubles
  int hysteresis = 2;                     ///< the scale halves at this overflow and later ones
  bool consecutive_hysteresis = false;    ///< any clean step refills the hysteresis
  double min_loss_scale = 1.0;
};

}  // namespace sherd
