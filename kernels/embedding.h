#pragma once

#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/accumulate.h"

namespace sherd {

/// out[i] = table[tokens[i]] (added to out when accumulating). tokens [...] i32, table [V, C], out
/// [..., C]. A token outside [0, V) is a DataError that names the token, its position and V, thrown
/// by the stream; on CUDA its row of out becomes NaN, which no loss survives.
void embedding_forward(const Tensor& tokens, const Tensor& table, const Tensor& out,
                       Accumulate accumulate, Stream& stream);

/// dtable[tokens[i]] += dout[i], summed in token order for every row; rows no token names become
/// zero unless accumulating. dtable is of dout's dtype or f32. On CUDA a token outside [0, V) adds
/// nothing, and there are fewer than 2^31 tokens.
void embedding_backward(const Tensor& tokens, const Tensor& dout, const Tensor& dtable,
                        Accumulate accumulate, Stream& stream);

/// Scratch that a CUDA stream needs for embedding_backward of so many tokens.
std::int64_t embedding_backward_scratch_bytes(std::int64_t tokens);

/// x[b, t] += table[t]: learned positions. x [B, T, C], table [P, C] with P ≥ T.
void position_forward(const Tensor& table, const Tensor& x, Stream& stream);

/// dtable[t] = sum over b of dx[b, t]; rows ≥ T become zero unless accumulating.
void position_backward(const Tensor& dx, const Tensor& dtable, Accumulate accumulate,
                       Stream& stream);

/// Scratch that a CUDA stream needs for position_backward of dx [batch, tokens, width].
std::int64_t position_backward_scratch_bytes(std::int64_t batch, std::int64_t tokens,
                                             std::int64_t width);

}  // namespace sherd
