#pragma once

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/master_parameters.h"
#include "kernels/update.h"

namespace sherd {

struct SgdSpec {
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
};

/// One SGD step over a flat shard, as PyTorch's SGD: decay is added to the gradient, and at the
/// first step the momentum becomes the gradient, undamped. `momentum` [n] f32, undefined when
/// spec.momentum is 0. Segments, scalars and bits are as in adamw_update.
void sgd_update(const MasterParameters& parameters, const Tensor& gradient, const Tensor& momentum,
                const DecaySegment* segments, int segment_count, const SgdSpec& spec,
                const UpdateScalars* scalars, Stream& stream);

}  // namespace sherd
