#include "kernels/attention.h"

#include "core/cpu_stream.h"
#include "kernels/attention_passes.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

AttentionShape check_operands(const OperandCheck& check, const Tensor& qkv, const Tensor& mask,
                              const Tensor& out, const Tensor& lse, const AttentionSpec& spec) {
  check.is_float(qkv, "qkv", 4);
  check.that(spec.heads > 0 && spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0,
             fmt::format("query heads are a multiple of key heads, got {} and {}", spec.heads,
                         spec.kv_heads));
  const std::int64_t batch = qkv.dim(0), tokens = qkv.dim(1), width = qkv.dim(3);
  check.is(qkv, "qkv", qkv.dtype(), {batch, tokens, spec.heads + 2 * spec.kv_heads, width});
  check.is_numel(out, "out", qkv.dtype(), batch * tokens * spec.heads * width);
  check.is_numel(lse, "lse", DType::f32, batch * spec.heads * tokens);
  if (mask.defined()) check.is_numel(mask, "mask", DType::i32, batch * tokens);
  check.that(width <= kTileNumel,
             fmt::format("heads are at most {} wide, got {}", kTileNumel, width));
  return {batch, tokens, spec.heads, spec.kv_heads, width, spec.causal, spec.scale};
}

}  // namespace

void attention_forward(const Tensor& qkv, const Tensor& mask, const Tensor& out, const Tensor& lse,
                       const AttentionSpec& spec, Stream& stream) {
  const OperandCheck check("attention_forward", stream);
  const AttentionShape shape = check_operands(check, qkv, mask, out, lse, spec);
  if (qkv.numel() == 0) return;
  if (!stream.device().is_cpu()) {
    return on_cuda::attention_forward(qkv, mask, out, lse, spec, stream);
  }
  with_float(qkv.dtype(), [&]<class T>() {
    const AttentionForward<T> pass{shape, qkv.as<T>(),
                                   mask.defined() ? mask.as<std::int32_t>() : nullptr, out.as<T>(),
                                   lse.as<float>()};
    enqueue(stream, [pass] { pass.run(); });
  });
}

void attention_backward(const Tensor& dout, const Tensor& qkv, const Tensor& mask,
                        const Tensor& out, const Tensor& lse, const Tensor& dqkv,
                        const AttentionSpec& spec, Stream& stream) {
  const OperandCheck check("attention_backward", stream);
  const AttentionShape shape = check_operands(check, qkv, mask, out, lse, spec);
  check.is_numel(dout, "dout", qkv.dtype(), out.numel());
  check.is(dqkv, "dqkv", qkv.dtype(), qkv.shape());
  if (qkv.numel() == 0) return;
  if (!stream.device().is_cpu()) {
    return on_cuda::attention_backward(dout, qkv, mask, out, lse, dqkv, spec, stream);
  }
  with_float(qkv.dtype(), [&]<class T>() {
    const AttentionBackward<T> pass{shape,       dout.as<T>(),
                                    qkv.as<T>(), mask.defined() ? mask.as<std::int32_t>() : nullptr,
                                    out.as<T>(), lse.as<float>(),
                                    dqkv.as<T>()};
    enqueue(stream, [pass] { pass.run(); });
  });
}

std::string attention_engine(const Shape& qkv, DType dtype, bool masked, const AttentionSpec& spec,
                             Stream& stream) {
  if (stream.device().is_cpu()) return "tiles through CBLAS";
  return on_cuda::attention_engine(qkv, dtype, masked, spec, stream);
}

std::string cudnn_version() { return on_cuda::cudnn_version(); }

}  // namespace sherd
