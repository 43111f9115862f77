#pragma once

#include <cstdint>

namespace sherd {

/// DeepSpeed's fp16 section.
struct LossScalerSpec {
  double loss_scale = 0.0;                ///< 0: dynamic; else this one, always (1 scales nothing)
  int initial_scale_power = 16;           ///< the dynamic scale starts as 2 to this power
  std::int64_t loss_scale_window = 1000;  ///< clean steps after which one more doubles the scale
  int hysteresis = 2;                     ///< overflows until the scale halves; then each halves it
  bool consecutive_hysteresis = false;    ///< any clean step refills the hysteresis, not only …
  double min_loss_scale = 1.0;            ///< … one at which the scale doubles
};

/// Throws ArgumentError that names the key when `spec` makes no sense.
void validate(const LossScalerSpec& spec);

/// Multiplies the loss so that small f16 gradients do not vanish, and finds the scale by trying:
/// DeepSpeed's rules. Fed with every step's outcome, the same on all ranks.
class LossScaler {
 public:
  /// What a checkpoint keeps.
  struct State {
    double scale = 1.0;
    int hysteresis = 1;               ///< overflows left until the scale halves
    std::int64_t step = 0;            ///< steps seen, skipped ones too
    std::int64_t last_overflow = -1;  ///< the last step that overflowed, -1: none
    bool operator==(const State&) const = default;
  };

  explicit LossScaler(const LossScalerSpec& spec);

  /// What the next step's loss is multiplied by.
  double scale() const { return state_.scale; }
  /// Takes in whether a step had a non-finite gradient (and was skipped). Throws NonFiniteError
  /// when it had, and a dynamic scale would have to fall below min_loss_scale.
  void update(bool overflow);

  const State& state() const { return state_; }
  /// Goes on from a checkpoint; a static scale stays what the configuration says.
  void restore(const State& state);

 private:
  void overflowed();
  void succeeded();

  LossScalerSpec spec_;
  State state_;
};

}  // namespace sherd
