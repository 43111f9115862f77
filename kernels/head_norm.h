#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"
#include "kernels/rope.h"

namespace sherd {

/// RMS norm of each head of a packed qkv tensor (QK-norm of Qwen3), rounded to qkv's dtype, and
/// then its rotation as `rope` does it, in place and in one pass. qkv [B, T, S, D]; the heads
/// [first_head, first_head + heads) of S are normalised with weight [D]; `rstd` [B*T*heads] f32 and
/// `saved` [B*T, heads, D] (the heads before, qkv's dtype) are written. D is even and at most
/// kMostHeadWidth.
void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, const RopeSpec& spec,
                       Stream& stream);
inline constexpr std::int64_t kMostHeadWidth = 8192;

/// Gradient of head_norm_forward, in place in dqkv [B, T, S, D]; between rotation and norm it is
/// rounded to dqkv's dtype.
void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, const RopeSpec& spec, Stream& stream);

/// Scratch that a CUDA stream needs for head_norm_backward of so many heads (of all tokens).
std::int64_t head_norm_backward_scratch_bytes(std::int64_t heads, std::int64_t width);

}  // namespace sherd
