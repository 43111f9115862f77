#include "kernels/non_finite.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

/// Whether all bits of the exponent are set: a test on integers, whatever the compiler may assume
/// of floats.
bool is_non_finite(float x) {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) == 0x7f800000u;
}
bool is_non_finite(bf16 x) { return (x.bits & 0x7f80u) == 0x7f80u; }
bool is_non_finite(f16 x) { return (x.bits & 0x7c00u) == 0x7c00u; }

struct Found {
  std::int64_t count = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  void operator+=(const Found& other) {
    count += other.count;
    first = std::min(first, other.first);
  }
};

template <class T>
Found find_in(const T* x, std::int64_t first, std::int64_t last) {
  Found found;
  std::int64_t count = 0;
#pragma omp simd reduction(+ : count)
  for (std::int64_t i = first; i < last; ++i) count += is_non_finite(x[i]) ? 1 : 0;
  found.count = count;
  if (count == 0) return found;
  found.first = std::find_if(x + first, x + last, [](T v) { return is_non_finite(v); }) - x;
  return found;
}

}  // namespace

void find_non_finite(const Tensor& x, std::int64_t first_index, const Tensor& found,
                     Stream& stream) {
  const OperandCheck check("find_non_finite", stream);
  check.is_float(x, "x");
  check_flat(check, found, "found", DType::i64, 2);
  const std::int64_t n = x.numel();
  if (n == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::find_non_finite(x, first_index, found, stream);
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [n, first_index, from = x.as<T>(), to = found.as<std::int64_t>()] {
      const auto result = sum_blocks<Found>(
          n, [=](std::int64_t first, std::int64_t last) { return find_in(from, first, last); });
      if (result.count == 0) return;
      to[0] += result.count;
      to[1] = std::min(to[1], first_index + result.first);
    });
  });
}

}  // namespace sherd
