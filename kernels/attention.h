#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// Grouped-query attention over a packed projection. qkv [B, T, heads + 2 * kv_heads, D] holds the
/// query heads, then the key heads, then the value heads of each token; query head h reads key and
/// value head h / (heads / kv_heads).
struct AttentionSpec {
  int heads = 1;
  int kv_heads = 1;
  bool causal = true;
  float scale = 1.0f;  ///< on q·k, usually 1 / sqrt(D)
};

/// out [B, T, heads, D] = softmax(scale q kᵀ) v; lse [B, heads, T] f32 is the log-sum-exp per
/// query, for the backward pass. mask [B, T] i32 (1 = a real token, 0 = padding that no query
/// reads) or undefined; a query that may read nothing gives zero, and lse = -inf. Works on tiles of
/// queries and keys (Dao et al. 2022), so no T x T matrix is ever held.
void attention_forward(const Tensor& qkv, const Tensor& mask, const Tensor& out, const Tensor& lse,
                       const AttentionSpec& spec, Stream& stream);

/// dqkv [B, T, heads + 2 * kv_heads, D] is overwritten. Deterministic for any number of threads.
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& mask,
                        const Tensor& out, const Tensor& lse, const Tensor& dqkv,
                        const AttentionSpec& spec, Stream& stream);

}  // namespace sherd
