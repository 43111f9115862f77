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

/// Gradients of layer_norm_forward: dx = residual + its own part, where `residual`, what reaches x
/// by the path around the norm, may be undefined; dx may alias dy or the residual. dweight, dbias
/// are of x's dtype or f32.
void layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, const Tensor& residual,
                         const Tensor& dx, const Tensor& dweight, const Tensor& dbias,
                         Accumulate weight_accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for layer_norm_backward of [rows, width].
std::int64_t layer_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width);

/// y = x * rstd * weight, rstd = 1 / sqrt(mean(x²) + epsilon), over the last dimension (Zhang &
/// Sennrich 2019); operands as in layer_norm_forward.
void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream);

/// Gradients of rms_norm_forward; operands as in layer_norm_backward.
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& residual, const Tensor& dx, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for rms_norm_backward of [rows, width].
std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width);

}  // namespace sherd
