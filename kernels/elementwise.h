#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// out = a + b, elementwise, in float; one dtype; out may alias either (the residual connection).
void add(const Tensor& a, const Tensor& b, const Tensor& out, Stream& stream);
/// out = a, converted between f32, bf16 and f16 (to nearest even); same numel. out is a itself (one
/// dtype) or does not overlap it.
void cast(const Tensor& a, const Tensor& out, Stream& stream);
/// sum[i] += x[i]; sum f32, x f32, bf16 or f16; or both i64.
void accumulate_into(const Tensor& x, const Tensor& sum, Stream& stream);
/// Every byte of x becomes zero.
void fill_zero(const Tensor& x, Stream& stream);
/// out = x; same dtype and numel; out is x itself or does not overlap it.
void copy(const Tensor& x, const Tensor& out, Stream& stream);

}  // namespace sherd
