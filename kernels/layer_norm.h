#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"

namespace sherd {

/// y = (x - mean) * rstd * weight + bias over the last dimension (Ba et al. 2016). x, y [..., C],
/// weight, bias [C]; mean, rstd [rows] f32 are written for the backward pass. y may alias x.
void layer_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y,
                        const Tensor& mean, const Tensor& rstd, float epsilon, Stream& stream);

/// Gradients of layer_norm_forward. dx (overwritten, or added to when `dx_accumulate`: the residual
/// path is then already there) may alias dy only when overwritten. dweight, dbias are of x's dtype
/// or f32.
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& dx,
                         Accumulate dx_accumulate, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for layer_norm_backward of [rows, width].
std::int64_t layer_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width);

}  // namespace sherd
