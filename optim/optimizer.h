#pragma once

namespace sherd {

/// The optimizer section of a run file, resolved.
struct OptimizerSpec {
  /// `adam` is L2 regularisation (Kingma & Ba 2015). DeepSpeed's "Adam" is `adamw` unless its
  /// adam_w_mode is false.
  enum class Type { adamw, adam, sgd };
  Type type = Type::adamw;
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool bias_correction = true;
  bool decay_all = false;  ///< decay norms and biases too
  double momentum = 0.0;   ///< sgd
  double dampening = 0.0;
  bool nesterov = false;
};

}  // namespace sherd
