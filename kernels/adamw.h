#pragma once

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/master_parameters.h"
#include "kernels/update.h"

namespace sherd {

struct AdamWSpec {
  double epsilon = 1e-8;
  bool decoupled_decay = true;  ///< AdamW; false adds decay to the gradient (L2, Kingma & Ba 2015)
};

/// One AdamW step over a flat shard (Loshchilov & Hutter 2019), value, master and moments in one
/// pass. gradient, first_moment, second_moment [n] f32. `segments` (device memory, sorted, the last
/// ends at n) and `scalars` are read when the operation runs. Every element is computed alone: the
/// bits don't depend on how the parameters are cut into shards, nor on the kind of device.
void adamw_update(const MasterParameters& parameters, const Tensor& gradient,
                  const Tensor& first_moment, const Tensor& second_moment,
                  const DecaySegment* segments, int segment_count, const AdamWSpec& spec,
                  const UpdateScalars* scalars, Stream& stream);

}  // namespace sherd
