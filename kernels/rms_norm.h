#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"

namespace sherd {

/// y = x * rstd * weight, rstd = 1 / sqrt(mean(x²) + epsilon), over the last dimension (Zhang &
/// Sennrich 2019). x, y [..., C], weight [C]; rstd [rows] f32 is written for the backward pass. y
/// may alias x.
void rms_norm_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& rstd,
                      float epsilon, Stream& stream);

/// Gradients of rms_norm_forward; dx is overwritten, or added to when `dx_accumulate` (the residual
/// path is then already there). dweight is of x's dtype or f32.
void rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                       const Tensor& dx, Accumulate dx_accumulate, const Tensor& dweight,
                       Accumulate weight_accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for rms_norm_backward of [rows, width].
std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t width);

/// RMS norm of each head of a packed qkv tensor (QK-norm of Qwen3), in place. qkv [B, T, S, D]; the
/// heads [first_head, first_head + heads) of S are normalised with weight [D]; `rstd` [B*T*heads]
/// f32 and `saved` [B*T, heads, D] (the un-normalised heads, qkv's dtype) are written.
void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, Stream& stream);

/// Gradient of head_norm_forward, in place in dqkv [B, T, S, D].
void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for head_norm_backward of so many heads (of all tokens).
std::int64_t head_norm_backward_scratch_bytes(std::int64_t heads, std::int64_t width);

}  // namespace sherd
