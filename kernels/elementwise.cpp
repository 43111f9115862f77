#include "kernels/elementwise.h"

#include <cstring>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

/// Enqueues f(i) for every element.
template <class F>
void for_each_element(std::int64_t n, Stream& stream, F f) {
  if (n == 0) return;
  enqueue(stream, [n, f] {
    for_blocks(n, [f](std::int64_t first, std::int64_t last) {
#pragma omp simd
      for (std::int64_t i = first; i < last; ++i) f(i);
    });
  });
}

}  // namespace

void add(const Tensor& a, const Tensor& b, const Tensor& out, Stream& stream) {
  const OperandCheck check("add", stream);
  check.is_float(a, "a");
  check_flat(check, b, "b", a.dtype(), a.numel());
  check_flat(check, out, "out", a.dtype(), a.numel());
  if (!stream.device().is_cpu()) return on_cuda::add(a, b, out, stream);
  with_float(a.dtype(), [&]<class T>() {
    for_each_element(a.numel(), stream,
                     [x = a.as<T>(), y = b.as<T>(), z = out.as<T>()](std::int64_t i) {
                       z[i] = T(static_cast<float>(x[i]) + static_cast<float>(y[i]));
                     });
  });
}

void cast(const Tensor& a, const Tensor& out, Stream& stream) {
  const OperandCheck check("cast", stream);
  check.is_float(a, "a");
  check.is_float(out, "out");
  check_flat(check, out, "out", out.dtype(), a.numel());
  if (a.dtype() == out.dtype()) return copy(a, out, stream);
  if (!stream.device().is_cpu()) return on_cuda::cast(a, out, stream);
  with_float(a.dtype(), [&]<class From>() {
    with_float(out.dtype(), [&]<class To>() {
      for_each_element(a.numel(), stream, [from = a.as<From>(), to = out.as<To>()](std::int64_t i) {
        to[i] = To(static_cast<float>(from[i]));
      });
    });
  });
}

void accumulate_into(const Tensor& x, const Tensor& sum, Stream& stream) {
  const OperandCheck check("accumulate_into", stream);
  if (sum.dtype() == DType::i64) {
    check_flat(check, sum, "sum", DType::i64, sum.numel());
    check_flat(check, x, "x", DType::i64, sum.numel());
    if (!stream.device().is_cpu()) return on_cuda::accumulate_into(x, sum, stream);
    for_each_element(x.numel(), stream,
                     [from = x.as<std::int64_t>(), to = sum.as<std::int64_t>()](std::int64_t i) {
                       to[i] += from[i];
                     });
    return;
  }
  check.is_float(x, "x");
  check_flat(check, sum, "sum", DType::f32, x.numel());
  if (!stream.device().is_cpu()) return on_cuda::accumulate_into(x, sum, stream);
  with_float(x.dtype(), [&]<class T>() {
    for_each_element(x.numel(), stream, [from = x.as<T>(), to = sum.as<float>()](std::int64_t i) {
      to[i] += static_cast<float>(from[i]);
    });
  });
}

void fill_zero(const Tensor& x, Stream& stream) {
  const std::int64_t bytes = x.size_bytes();
  check_flat(OperandCheck("fill_zero", stream), x, "x", x.dtype(), x.numel());
  if (bytes == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::fill_zero(x, stream);
  enqueue(stream, [bytes, to = static_cast<std::byte*>(x.data())] {
    for_blocks(bytes, [to](std::int64_t first, std::int64_t last) {
      std::memset(to + first, 0, static_cast<std::size_t>(last - first));
    });
  });
}

void copy(const Tensor& x, const Tensor& out, Stream& stream) {
  const OperandCheck check("copy", stream);
  check_flat(check, x, "x", x.dtype(), x.numel());
  check_flat(check, out, "out", x.dtype(), x.numel());
  const std::int64_t bytes = x.size_bytes();
  if (bytes == 0 || x.data() == out.data()) return;
  if (!stream.device().is_cpu()) return on_cuda::copy(x, out, stream);
  enqueue(stream, [bytes, from = static_cast<const std::byte*>(x.data()),
                   to = static_cast<std::byte*>(out.data())] {
    for_blocks(bytes, [from, to](std::int64_t first, std::int64_t last) {
      std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
    });
  });
}

}  // namespace sherd
