#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "core/dtype.h"
#include "core/stream.h"
#include "kernels/attention.h"

// The two engines that compute attention on CUDA devices: cuDNN, and own kernels for what cuDNN
// does not take. kernels/attention.cu chooses.

namespace sherd::on_cuda {

/// One call's sizes and options: the layouts of kernels/attention.h.
struct AttentionProblem {
  std::int64_t batch = 0, tokens = 0;
  int heads = 1, kv_heads = 1;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  bool causal = true;
  bool deterministic = false;
  float scale = 1.0f;
  // NOLINTNEXTLINE(modernize-use-nullptr): it takes the comparison with 0 for one
  auto operator<=>(const AttentionProblem&) const = default;
};

struct AttentionForwardOperands {
  const void* qkv;
  const std::int32_t* mask;  ///< or null
  void* out;
  float* lse;
};

struct AttentionBackwardOperands {
  const void* dout;
  const void* qkv;
  const std::int32_t* mask;  ///< or null
  const void* out;
  const float* lse;
  void* dqkv;
};

/// Leave alone the samples for which `done` (or null) says so. Bits are the same in each run.
void own_attention_forward(const AttentionProblem& problem, const AttentionForwardOperands& at,
                           const std::int32_t* done, Stream& stream);
/// `row_dots` is scratch: one float per query of each head.
void own_attention_backward(const AttentionProblem& problem, const AttentionBackwardOperands& at,
                            const std::int32_t* done, float* row_dots, Stream& stream);

/// Where things lie in the scratch of one call, in bytes from its start.
struct AttentionScratch {
  explicit AttentionScratch(const AttentionProblem& problem);
  std::int64_t row_dots = 0;
  std::int64_t lengths = 0;          ///< three i32 a sample: queries, keys, whether cuDNN is right
  std::int64_t workspace = 0;        ///< cuDNN's
  std::int64_t workspace_bytes = 0;  ///< what needs more is left to the own kernels
  std::int64_t total_bytes = 0;
};

enum class AttentionPass { forward, backward };

/// Tokens of each sample that its queries and its keys have, on the device; null: all.
struct AttentionLengths {
  const std::int32_t* queries = nullptr;
  const std::int32_t* keys = nullptr;
};

/// "cuDNN 9.14.0"; only where it does not decline.
std::string cudnn_name();
/// Why cuDNN does not compute this pass of `problem`, with lengths or without; empty when it does.
/// The first question builds the pass, and must not be captured.
std::string cudnn_declines(const AttentionProblem& problem, AttentionPass pass, bool with_lengths,
                           Stream& stream);
/// Only for what cuDNN does not decline. Lengths stand for masks, which are not read.
void cudnn_attention_forward(const AttentionProblem& problem, const AttentionForwardOperands& at,
                             const AttentionLengths& lengths, void* workspace, Stream& stream);
void cudnn_attention_backward(const AttentionProblem& problem, const AttentionBackwardOperands& at,
                              const AttentionLengths& lengths, void* workspace, Stream& stream);

}  // namespace sherd::on_cuda
