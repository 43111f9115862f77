#include "kernels/cuda_kernels.h"
#include "kernels/rows.cuh"

namespace sherd::on_cuda {
namespace {

constexpr int kTurns = 4;  // packs of a row that a thread takes

template <int V, class T>
__global__ void forward_kernel(const T* x, T* y, std::int64_t samples, std::int64_t tokens,
                               std::int64_t width) {
  const std::int64_t sample = row_of_thread();
  if (sample >= samples) return;
  const T* from = x + sample * tokens * width;
  T* to = y + sample * width;
  for_columns<V>(width, [&](std::int64_t c) { store_pack(to + c, load_pack<V>(from + c)); });
}

template <int V, class T>
__global__ void backward_kernel(const T* dy, T* dx, std::int64_t rows, std::int64_t tokens,
                                std::int64_t width) {
  const std::int64_t row = row_of_thread();
  if (row >= rows) return;
  const bool first = row % tokens == 0;
  const T* from = dy + row / tokens * width;
  T* to = dx + row * width;
  for_columns<V>(width, [&](std::int64_t c) {
    Pack<T, V> pack;
    if (first) {
      pack = load_pack<V>(from + c);
    } else {
#pragma unroll
      for (int i = 0; i < V; ++i) pack.v[i] = from_float<T>(0.0f);
    }
    store_pack(to + c, pack);
  });
}

}  // namespace

void first_token_forward(const Tensor& x, const Tensor& y, Stream& stream) {
  if (x.numel() == 0) return;
  const std::int64_t samples = x.dim(0), tokens = x.dim(1), width = x.dim(2);
  with_device_float(x.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(x);
    auto* to = elements<T>(y);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(width, V, kTurns);
      forward_kernel<V><<<threads.blocks_for_rows(samples), threads.block(), 0, cuda(stream)>>>(
          from, to, samples, tokens, width);
      check_launch("first_token_forward");
    };
    with_row_pack<T>(width, launch, from, to);
  });
}

void first_token_backward(const Tensor& dy, const Tensor& dx, Stream& stream) {
  if (dx.numel() == 0) return;
  const std::int64_t tokens = dx.dim(1), width = dx.dim(2), rows = dx.dim(0) * tokens;
  with_device_float(dx.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(dy);
    auto* to = elements<T>(dx);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(width, V, kTurns);
      backward_kernel<V><<<threads.blocks_for_rows(rows), threads.block(), 0, cuda(stream)>>>(
          from, to, rows, tokens, width);
      check_launch("first_token_backward");
    };
    with_row_pack<T>(width, launch, from, to);
  });
}

}  // namespace sherd::on_cuda
