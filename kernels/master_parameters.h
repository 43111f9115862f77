#pragma once

#include <optional>

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// The parameters at rest on this rank: `value` is what gathers send. f32: `value` is the master
/// and `master` is undefined. bf16: `master` i16 is the signed remainder that with `value` gives
/// the f32 master exactly. f16: `master` is the f32 master.
///
/// In bf16 the bits of value and remainder add up to the bits of the master, whatever those are;
/// `value` is the master rounded to nearest, ties away from zero, so masters of magnitude
/// 0x1.ffp127 (3.3953e38) and above have an infinite value while they stay finite themselves. f16
/// rounds to nearest even, and masters of magnitude 65520 and above have an infinite value.
struct MasterParameters {
  Tensor value;
  Tensor master;
};

/// The dtype of `master` beside values of this dtype; none where values are their own master.
std::optional<DType> master_dtype(DType value);

/// Splits f32 masters into parameters at rest (`parameters.value` and `.master`), and back.
void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream);
void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream);

}  // namespace sherd
