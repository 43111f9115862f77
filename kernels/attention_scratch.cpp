#include <algorithm>

#include "core/buffer.h"
#include "kernels/attention.h"
#include "kernels/attention_engines.h"

// How much scratch attention takes on CUDA devices: known from the shape alone, so that a plan can
// be made where there is no device. cuDNN's share is what its graphs hold beside their operands.

namespace sherd {
namespace on_cuda {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kTile = 128;  ///< rows that cuDNN's tiles round sequences up to
constexpr std::int64_t kSlackBytes = std::int64_t{4} << 20;
/// The deterministic backward pass writes slopes of all scores. Beyond this they are not worth
/// their memory, and the own kernels, which write none, do it.
constexpr std::int64_t kMostSlopeBytes = std::int64_t{1} << 30;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::int64_t cudnn_bytes(const AttentionProblem& p) {
  if (p.dtype == DType::f32) return 0;
  const std::int64_t tokens = round_up(p.tokens, kTile);
  const std::int64_t rows = p.batch * p.heads * tokens;
  const std::int64_t sums = rows * kFloatBytes;
  const std::int64_t query_gradient = rows * p.width * kFloatBytes;
  // Gradients of keys and values of all query heads, before those of a group are added.
  const std::int64_t of_groups = p.heads == p.kv_heads ? 0 : 2 * query_gradient;
  const std::int64_t slopes = p.deterministic ? rows * tokens * size_of(p.dtype) : 0;
  return sums + std::max(query_gradient, slopes <= kMostSlopeBytes ? slopes : 0) + of_groups +
         kSlackBytes;
}

}  // namespace

AttentionScratch::AttentionScratch(const AttentionProblem& p) {
  constexpr std::int64_t kLengths = 3;
  lengths = aligned(p.batch * p.heads * p.tokens * kFloatBytes);
  workspace = lengths + aligned(p.batch * kLengths * kFloatBytes);
  workspace_bytes = cudnn_bytes(p);
  total_bytes = workspace + aligned(workspace_bytes);
}

}  // namespace on_cuda

std::int64_t attention_scratch_bytes(std::int64_t batch, std::int64_t tokens, std::int64_t width,
                                     DType dtype, const AttentionSpec& spec) {
  return on_cuda::AttentionScratch({batch, tokens, spec.heads, spec.kv_heads, width, dtype,
                                    spec.causal, spec.deterministic, spec.scale})
      .total_bytes;
}

}  // namespace sherd
