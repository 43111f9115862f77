#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/master_parameters.h"
#include "kernels/update.h"
#include "optim/schedule.h"

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

/// Throws ArgumentError that names the key when `spec` makes no sense.
void validate(const OptimizerSpec& spec);

/// A tensor that an optimizer keeps for every parameter, of the shard's size, zero before the first
/// step. Names are PyTorch's, and those of checkpoints.
struct StateTensor {
  std::string_view name;
  DType dtype = DType::f32;
};

/// What `spec` keeps, in the order `update_parameters` takes it; at most kMaxStateTensors.
std::vector<StateTensor> optimizer_state(const OptimizerSpec& spec);
inline constexpr int kMaxStateTensors = 2;

/// What the update of step `step` (counted from 0 over applied steps) needs. Every gradient is
/// multiplied by `gradient_scale`; a step that is not to be applied writes nothing.
UpdateScalars update_scalars(const OptimizerSpec& spec, const ScheduledStep& scheduled,
                             std::int64_t step, double gradient_scale, bool apply);

/// One optimizer step over a flat shard, enqueued. gradient [n] f32; segments and scalars are read
/// when the operation runs (see kernels/adamw.h, kernels/sgd.h).
void update_parameters(const OptimizerSpec& spec, const MasterParameters& parameters,
                       const Tensor& gradient, std::span<const Tensor> state,
                       std::span<const DecaySegment> segments, const UpdateScalars* scalars,
                       Stream& stream);

}  // namespace sherd
