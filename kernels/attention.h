#pragma once

#include <cstdint>
#include <string>

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
  /// The gradient has the same bits in every run. On CPUs and in the own CUDA kernels it always
  /// has; cuDNN is faster and takes less memory without.
  bool deterministic = false;
};

/// The widest D on CUDA.
inline constexpr int kWidestHeadOnGpus = 256;

/// out [B, T, heads, D] = softmax(scale q kᵀ) v; lse [B, heads, T] f32 is the log-sum-exp per
/// query, for the backward pass. mask [B, T] i32 (1 = a real token, 0 = padding that no query
/// reads) or undefined; a query that may read nothing gives zero, and lse = -inf. Works on tiles of
/// queries and keys (Dao et al. 2022), so no T x T matrix is ever held. On CUDA D is at most
/// kWidestHeadOnGpus.
void attention_forward(const Tensor& qkv, const Tensor& mask, const Tensor& out, const Tensor& lse,
                       const AttentionSpec& spec, Stream& stream);

/// dqkv [B, T, heads + 2 * kv_heads, D] is overwritten. Deterministic for any number of threads.
void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& mask,
                        const Tensor& out, const Tensor& lse, const Tensor& dqkv,
                        const AttentionSpec& spec, Stream& stream);

/// Scratch that a CUDA stream needs for both passes, whichever engine runs them; needs no device.
std::int64_t attention_scratch_bytes(std::int64_t batch, std::int64_t tokens, std::int64_t width,
                                     DType dtype, const AttentionSpec& spec);

/// Which engine runs attention over qkv [B, T, heads + 2 * kv_heads, D] on this stream, for people:
/// "cuDNN 9.14.0", or "own kernels (...)" with the reason. Builds what the engine needs, which
/// takes a while at a shape's first call, here or in a pass.
std::string attention_engine(const Shape& qkv, DType dtype, bool masked, const AttentionSpec& spec,
                             Stream& stream);

/// "cuDNN 9.14.0", or "no cuDNN: " and why.
std::string cudnn_version();

}  // namespace sherd
