#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// y[b] = x[b, 0]: the row of each sample's first token. x [B, T, C], y [B, C], one float dtype;
/// T is at least 1.
void first_token_forward(const Tensor& x, const Tensor& y, Stream& stream);

/// dx[b, 0] = dy[b], and zero for every other token.
void first_token_backward(const Tensor& dy, const Tensor& dx, Stream& stream);

}  // namespace sherd
