#include "kernels/head_norm.h"

#include <algorithm>

#include "core/cpu_stream.h"
#include "kernels/column_sums.h"
#include "kernels/cuda_kernels.h"
#include "kernels/head_range.h"
#include "kernels/norm_rows.h"
#include "kernels/partial_sums.h"
#include "kernels/rope_check.h"

namespace sherd {
namespace {

void check_operands(const OperandCheck& check, const HeadRange& range, const Tensor& qkv,
                    const Tensor& weight, const Tensor& saved, const Tensor& rstd,
                    const RopeSpec& spec) {
  check_rope(check, range.width, spec);
  check.that(range.width <= kMostHeadWidth,
             fmt::format("heads have up to {} elements, got {}", kMostHeadWidth, range.width));
  check.is(weight, "weight", qkv.dtype(), {range.width});
  check.is_rows(saved, "saved", qkv.dtype(), range.rows(), range.width);
  check.is_numel(rstd, "rstd", DType::f32, range.rows());
}

template <class T>
void run_forward(T* qkv, const HeadRange& range, const T* weight, T* saved, float* rstd,
                 float epsilon) {
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < range.rows(); ++r) {
    T* head = qkv + range.offset(r);
    T* before = saved + r * range.width;
    std::copy_n(head, range.width, before);
    rstd[r] = norm_row_forward<false, T>(before, weight, nullptr, head, range.width, epsilon).rstd;
  }
}

template <class T, class G>
void run_backward(T* dqkv, const HeadRange& range, const T* weight, const T* saved,
                  const float* rstd, G* dweight, Accumulate accumulate) {
  sum_columns(range.rows(), range.width, dweight, accumulate, [=](std::int64_t r, std::int64_t c) {
    const auto d = static_cast<float>(dqkv[range.offset(r) + c]);
    const auto x = static_cast<float>(saved[r * range.width + c]);
    return static_cast<double>(d * (x * rstd[r]));
  });
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < range.rows(); ++r) {
    T* d = dqkv + range.offset(r);
    norm_row_backward<false, T>(d, saved + r * range.width, weight, {0.0f, rstd[r]}, nullptr, d,
                                range.width);
  }
}

}  // namespace

void head_norm_forward(const Tensor& qkv, int first_head, int heads, const Tensor& weight,
                       const Tensor& saved, const Tensor& rstd, float epsilon, const RopeSpec& spec,
                       Stream& stream) {
  const OperandCheck check("head_norm_forward", stream);
  const HeadRange range(check, qkv, first_head, heads);
  check_operands(check, range, qkv, weight, saved, rstd, spec);
  if (!stream.device().is_cpu()) {
    return on_cuda::head_norm_forward(qkv, first_head, heads, weight, saved, rstd, epsilon, spec,
                                      stream);
  }
  with_float(qkv.dtype(), [&]<class T>() {
    enqueue(stream, [=, heads_at = qkv.as<T>(), w = weight.as<T>(), kept = saved.as<T>(),
                     scales = rstd.as<float>()] {
      run_forward(heads_at, range, w, kept, scales, epsilon);
    });
  });
  rope(qkv, first_head, heads, spec, RopeDirection::forward, stream);
}

void head_norm_backward(const Tensor& dqkv, int first_head, int heads, const Tensor& weight,
                        const Tensor& saved, const Tensor& rstd, const Tensor& dweight,
                        Accumulate weight_accumulate, const RopeSpec& spec, Stream& stream) {
  const OperandCheck check("head_norm_backward", stream);
  const HeadRange range(check, dqkv, first_head, heads);
  check_operands(check, range, dqkv, weight, saved, rstd, spec);
  check.is_sum(dweight, "dweight", dqkv.dtype(), {range.width});
  if (!stream.device().is_cpu()) {
    return on_cuda::head_norm_backward(dqkv, first_head, heads, weight, saved, rstd, dweight,
                                       weight_accumulate, spec, stream);
  }
  rope(dqkv, first_head, heads, spec, RopeDirection::backward, stream);
  with_float(dqkv.dtype(), [&]<class T>() {
    with_sum_of<T>(dweight.dtype(), [&]<class G>() {
      enqueue(stream, [=, d = dqkv.as<T>(), w = weight.as<T>(), kept = saved.as<T>(),
                       scales = rstd.as<float>(), dw = dweight.as<G>()] {
        run_backward(d, range, w, kept, scales, dw, weight_accumulate);
      });
    });
  });
}

std::int64_t head_norm_backward_scratch_bytes(std::int64_t heads, std::int64_t width) {
  return norm_sums_bytes(heads, width, 1);
}

}  // namespace sherd
