#include "kernels/fixed_point.h"

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/exact_digits.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

/// Splits x[first, last); returns how many values were left out.
template <class T>
std::int64_t split_range(const T* x, std::int64_t* high, std::int64_t* low, bool accumulate,
                         std::int64_t first, std::int64_t last) {
  std::int64_t rejected = 0;
#pragma omp simd reduction(+ : rejected)
  for (std::int64_t i = first; i < last; ++i) {
    const FixedPoint value = split_fixed(static_cast<float>(x[i]));
    rejected += value.rejected;
    high[i] = value.high + (accumulate ? high[i] : 0);
    low[i] = value.low + (accumulate ? low[i] : 0);
  }
  return rejected;
}

}  // namespace

void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate, const Tensor& non_finite,
                    Stream& stream) {
  const std::int64_t n = x.numel();
  const OperandCheck check("to_fixed_point", stream);
  check.is_float(x, "x");
  check.is(limbs, "limbs", DType::i64, {kLimbs, n});
  check_count(check, non_finite);
  if (n == 0) return;
  if (!stream.device().is_cpu()) {
    return on_cuda::to_fixed_point(x, limbs, accumulate, non_finite, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = x.as<T>(), high = limbs.as<std::int64_t>(),
                     count = non_finite.as<std::int64_t>()] {
      *count += sum_blocks<std::int64_t>(n, [=](std::int64_t first, std::int64_t last) {
        return split_range(from, high, high + n, accumulate, first, last);
      });
    });
  });
}

void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream) {
  const std::int64_t n = x.numel();
  const OperandCheck check("from_fixed_point", stream);
  check_flat(check, x, "x", DType::f32, n);
  check.is(limbs, "limbs", DType::i64, {kLimbs, n});
  if (n == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::from_fixed_point(limbs, x, stream);
  enqueue(stream, [n, to = x.as<float>(), high = limbs.as<std::int64_t>()] {
    for_blocks(n, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = join_fixed(high[i], high[i + n]);
    });
  });
}

}  // namespace sherd
