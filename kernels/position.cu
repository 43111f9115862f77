#include "kernels/column_sums.cuh"
#include "kernels/cuda_kernels.h"
#include "kernels/rows.cuh"

namespace sherd::on_cuda {
namespace {

template <int V, class T>
__global__ void forward_kernel(const T* table, T* x, std::int64_t rows, std::int64_t tokens,
                               std::int64_t width) {
  const std::int64_t row = row_of_thread();
  if (row >= rows) return;
  const T* from = table + row % tokens * width;
  T* to = x + row * width;
  for_columns<V>(width, [&](std::int64_t c) {
    const auto position = load_pack<V>(from + c);
    auto sum = load_pack<V>(to + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      sum.v[i] = from_float<T>(to_float(sum.v[i]) + to_float(position.v[i]));
    }
    store_pack(to + c, sum);
  });
}

}  // namespace

void position_forward(const Tensor& table, const Tensor& x, Stream& stream) {
  if (x.numel() == 0) return;
  const std::int64_t tokens = x.dim(1);
  const std::int64_t width = x.dim(2);
  const std::int64_t rows = x.dim(0) * tokens;
  with_device_float(x.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(table);
    auto* to = elements<T>(x);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(width, V, 4);
      forward_kernel<V><<<threads.blocks_for_rows(rows), threads.block(), 0, cuda(stream)>>>(
          from, to, rows, tokens, width);
      check_launch("position_forward");
    };
    with_row_pack<T>(width, launch, from, to);
  });
}

void position_backward(const Tensor& dx, const Tensor& dtable, Accumulate accumulate,
                       Stream& stream) {
  const std::int64_t sample = dx.dim(1) * dx.dim(2);
  with_device_sums(dx.dtype(), dtable.dtype(), [&]<class T, class G>() {
    column_sums("position_backward", elements<const T>(dx), dx.dim(0), sample, elements<G>(dtable),
                accumulate, stream);
  });
  if (accumulate == Accumulate::yes) return;
  on_cuda::fill_zero(dtable.flat({sample, dtable.numel() - sample}), stream);
}

}  // namespace sherd::on_cuda
