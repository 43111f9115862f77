#include "kernels/attention.h"

#include "kernels/attention_engines.h"
#include "kernels/cuda_kernels.h"
#include "kernels/launch.cuh"

// Chooses the engine of each call. cuDNN knows masks only as lengths, and the host never reads a
// mask: a kernel finds the lengths, cuDNN computes every sample as if padded on the right, and the
// own kernels then do again the samples that are not, if there are any.

namespace sherd::on_cuda {
namespace {

AttentionProblem problem_of(const Shape& qkv, DType dtype, const AttentionSpec& spec) {
  return {qkv[0], qkv[1],      spec.heads,         spec.kv_heads, qkv[3],
          dtype,  spec.causal, spec.deterministic, spec.scale};
}

void check_width(const AttentionProblem& problem) {
  require(problem.width <= kWidestHeadOnGpus, "attention on CUDA takes heads up to {} wide, got {}",
          kWidestHeadOnGpus, problem.width);
}

/// Before cuDNN 9.16 a sequence that ends inside a tile needs lengths.
bool needs_lengths(const AttentionProblem& problem, bool masked) {
  constexpr std::int64_t kTile = 128;
  return masked || problem.tokens % kTile != 0;
}

/// Why this shape is not for cuDNN, before asking it.
std::string shape_declines(const AttentionProblem& problem) {
  constexpr std::int64_t kPackOfWidth = 8;
  if (problem.dtype == DType::f32) return "cuDNN takes no f32";
  if (problem.width % kPackOfWidth != 0) return "cuDNN takes heads of multiples of 8";
  return "";
}

std::string declines(const AttentionProblem& problem, AttentionPass pass, bool masked,
                     Stream& stream) {
  const std::string reason = shape_declines(problem);
  if (!reason.empty()) return reason;
  return cudnn_declines(problem, pass, needs_lengths(problem, masked), stream);
}

template <class... P>
bool cudnn_takes(const AttentionProblem& problem, AttentionPass pass, bool masked, Stream& stream,
                 const P*... operands) {
  return (is_aligned(operands) && ...) && declines(problem, pass, masked, stream).empty();
}

/// The parts of a call's scratch.
struct Scratch {
  Scratch(const AttentionProblem& problem, Stream& stream, const char* operation) {
    const AttentionScratch layout(problem);
    auto* start =
        static_cast<std::byte*>(cuda_stream(stream).scratch(layout.total_bytes, operation));
    row_dots = reinterpret_cast<float*>(start + layout.row_dots);
    queries = reinterpret_cast<std::int32_t*>(start + layout.lengths);
    keys = queries + problem.batch;
    done = keys + problem.batch;
    workspace = start + layout.workspace;
  }
  AttentionLengths lengths(const AttentionProblem& problem, bool masked) const {
    if (!needs_lengths(problem, masked)) return {};
    return {queries, keys};
  }

  float* row_dots;
  std::int32_t* queries;
  std::int32_t* keys;
  std::int32_t* done;  ///< whether lengths say all of a sample's mask
  void* workspace;
};

/// One block a sample. A mask is padding on the right when no real token follows padding.
__global__ void lengths_kernel(std::int64_t tokens, const std::int32_t* mask, std::int32_t* queries,
                               std::int32_t* keys, std::int32_t* done) {
  const std::int64_t sample = blockIdx.x;
  const std::int32_t* of_sample = mask == nullptr ? nullptr : mask + sample * tokens;
  std::int32_t real = 0;
  std::int32_t resumed = 0;
  for (std::int64_t t = threadIdx.x; t < tokens; t += blockDim.x) {
    const bool here = of_sample == nullptr || of_sample[t] != 0;
    const bool before = t == 0 || of_sample == nullptr || of_sample[t - 1] != 0;
    real += here ? 1 : 0;
    resumed += here && !before ? 1 : 0;
  }
  real = block_sum(real);
  resumed = block_sum(resumed);
  if (threadIdx.x != 0) return;
  const bool right = real > 0 && resumed == 0;
  queries[sample] = static_cast<std::int32_t>(tokens);
  keys[sample] = right ? real : static_cast<std::int32_t>(tokens);
  done[sample] = right ? 1 : 0;
}

void find_lengths(const AttentionProblem& problem, const std::int32_t* mask, const Scratch& scratch,
                  Stream& stream) {
  if (!needs_lengths(problem, mask != nullptr)) return;
  lengths_kernel<<<static_cast<unsigned>(problem.batch), kBlock, 0, cuda(stream)>>>(
      problem.tokens, mask, scratch.queries, scratch.keys, scratch.done);
  check_launch("attention's lengths");
}

/// Gradients of keys and values of padding are zero. One block a token.
template <class T>
__global__ void clear_padding_kernel(std::int64_t tokens, std::int64_t stride, std::int64_t first,
                                     const std::int32_t* keys, T* dqkv) {
  const std::int64_t token = blockIdx.x;
  if (token % tokens < keys[token / tokens]) return;
  T* row = dqkv + token * stride;
  for (std::int64_t c = first + threadIdx.x; c < stride; c += blockDim.x) row[c] = T{};
}

void clear_padding(const AttentionProblem& problem, const std::int32_t* keys, void* dqkv,
                   Stream& stream) {
  const std::int64_t stride = (problem.heads + 2 * problem.kv_heads) * problem.width;
  with_device_float(problem.dtype, [&]<class T>() {
    clear_padding_kernel<<<static_cast<unsigned>(problem.batch * problem.tokens), kBlock, 0,
                           cuda(stream)>>>(problem.tokens, stride, problem.heads * problem.width,
                                           keys, static_cast<T*>(dqkv));
    check_launch("attention_backward's padding");
  });
}

const std::int32_t* data_of(const Tensor& mask) {
  return mask.defined() ? mask.as<std::int32_t>() : nullptr;
}

}  // namespace

void attention_forward(const Tensor& qkv, const Tensor& mask, const Tensor& out, const Tensor& lse,
                       const AttentionSpec& spec, Stream& stream) {
  const AttentionProblem problem = problem_of(qkv.shape(), qkv.dtype(), spec);
  check_width(problem);
  const AttentionForwardOperands at{qkv.data(), data_of(mask), out.data(), lse.as<float>()};
  const bool masked = at.mask != nullptr;
  if (!cudnn_takes(problem, AttentionPass::forward, masked, stream, at.qkv, at.out)) {
    return own_attention_forward(problem, at, nullptr, stream);
  }
  const Scratch scratch(problem, stream, "attention_forward");
  find_lengths(problem, at.mask, scratch, stream);
  cudnn_attention_forward(problem, at, scratch.lengths(problem, masked), scratch.workspace, stream);
  if (masked) own_attention_forward(problem, at, scratch.done, stream);
}

void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& mask,
                        const Tensor& out, const Tensor& lse, const Tensor& dqkv,
                        const AttentionSpec& spec, Stream& stream) {
  const AttentionProblem problem = problem_of(qkv.shape(), qkv.dtype(), spec);
  check_width(problem);
  const AttentionBackwardOperands at{dout.data(), qkv.data(),      data_of(mask),
                                     out.data(),  lse.as<float>(), dqkv.data()};
  const bool masked = at.mask != nullptr;
  const Scratch scratch(problem, stream, "attention_backward");
  if (!cudnn_takes(problem, AttentionPass::backward, masked, stream, at.dout, at.qkv, at.out,
                   at.dqkv)) {
    return own_attention_backward(problem, at, nullptr, scratch.row_dots, stream);
  }
  find_lengths(problem, at.mask, scratch, stream);
  cudnn_attention_backward(problem, at, scratch.lengths(problem, masked), scratch.workspace,
                           stream);
  if (!masked) return;
  clear_padding(problem, scratch.keys, at.dqkv, stream);
  own_attention_backward(problem, at, scratch.done, scratch.row_dots, stream);
}

std::string attention_engine(const Shape& qkv, DType dtype, bool masked, const AttentionSpec& spec,
                             Stream& stream) {
  const AttentionProblem problem = problem_of(qkv, dtype, spec);
  check_width(problem);
  const std::string forward = declines(problem, AttentionPass::forward, masked, stream);
  const std::string backward = declines(problem, AttentionPass::backward, masked, stream);
  if (forward.empty() && backward.empty()) return cudnn_name();
  if (!forward.empty() && !backward.empty()) return fmt::format("own kernels ({})", forward);
  if (backward.empty())
    return fmt::format("{} backward, own kernels forward ({})", cudnn_name(), forward);
  return fmt::format("{} forward, own kernels backward ({})", cudnn_name(), backward);
}

}  // namespace sherd::on_cuda
