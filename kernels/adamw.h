#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// What an update needs to know of its step. Lives in device memory: written by the step itself, so
/// that the host never waits for it.
struct UpdateScalars {
  float lr = 0.0f;
  float gradient_scale = 1.0f;   ///< multiplies every gradient: clip factor / loss scale, token mean
  float bias_correction1 = 1.0f; ///< 1 - beta1^t, or 1
  float bias_correction2 = 1.0f; ///< 1 - beta2^t, or 1
  std::int32_t apply = 1;        ///< 0: the step is skipped and nothing is written
};

/// Elements [previous end, end) of a flat shard decay with `weight_decay`.
struct DecaySegment {
  std::int64_t end = 0;
  float weight_decay = 0.0f;
};

struct AdamWSpec {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  bool decoupled_decay = true;  ///< AdamW; false adds decay to the gradient (L2, Kingma & Ba 2015)
};

/// The parameters at rest on this rank: `value` is what gathers send. f32: `value` is the master and
/// `master` is undefined. bf16: `master` i16 is the signed remainder that with `value` gives the f32
/// master exactly. f16: `master` is the f32 master.
struct MasterParameters {
  Tensor value;
  Tensor master;
};

/// One AdamW step over a flat shard (Loshchilov & Hutter 2019), value, master and moments in one
/// pass. gradient, first_moment, second_moment [n] f32. `segments` (device memory, sorted, the last
/// ends at n) and `scalars` are read when the operation runs.
void adamw_update(const MasterParameters& parameters, const Tensor& gradient,
                  const Tensor& first_moment, const Tensor& second_moment,
                  const DecaySegment* segments, int segment_count, const AdamWSpec& spec,
                  const UpdateScalars* scalars, Stream& stream);

struct SgdSpec {
  float momentum = 0.0f;
  float dampening = 0.0f;
  bool nesterov = false;
  bool first_step_copies = true;  ///< PyTorch: the buffer starts as the first gradient, undamped
};

/// One SGD step with momentum over a flat shard, as PyTorch's SGD. `momentum` [n] f32 or undefined
/// when spec.momentum is 0. A step is the first when scalars->bias_correction1 is 0.
void sgd_update(const MasterParameters& parameters, const Tensor& gradient, const Tensor& momentum,
                const DecaySegment* segments, int segment_count, const SgdSpec& spec,
                const UpdateScalars* scalars, Stream& stream);

/// Splits f32 masters into parameters at rest (`parameters.value` and `.master`), and back.
void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream);
void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream);

}  // namespace sherd
