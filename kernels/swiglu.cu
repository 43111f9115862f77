#include "kernels/cuda_kernels.h"
#include "kernels/device_math.cuh"
#include "kernels/rows.cuh"

namespace sherd::on_cuda {
namespace {

/// Rows of gate_up [rows, 2 * width] and y [rows, width].
struct SwigluShape {
  std::int64_t rows, width;
};

template <int V, class T>
__global__ void forward_kernel(SwigluShape shape, const T* gate_up, T* y) {
  const std::int64_t row = row_of_thread();
  if (row >= shape.rows) return;
  const T* gates = gate_up + row * 2 * shape.width;
  const T* ups = gates + shape.width;
  T* to = y + row * shape.width;
  for_columns<V>(shape.width, [&](std::int64_t c) {
    const auto gate = load_pack<V>(gates + c);
    auto out = load_pack<V>(ups + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float g = to_float(gate.v[i]);
      out.v[i] = from_float<T>(g * sigmoid_for<T>(g).value * to_float(out.v[i]));
    }
    store_pack(to + c, out);
  });
}

template <int V, class T>
__global__ void backward_kernel(SwigluShape shape, const T* dy, const T* gate_up, T* y,
                                T* dgate_up) {
  const std::int64_t row = row_of_thread();
  if (row >= shape.rows) return;
  const T* gates = gate_up + row * 2 * shape.width;
  const T* ups = gates + shape.width;
  const T* slopes = dy + row * shape.width;
  T* dgates = dgate_up + row * 2 * shape.width;
  T* dups = dgates + shape.width;
  for_columns<V>(shape.width, [&](std::int64_t c) {
    auto gate = load_pack<V>(gates + c);
    auto up = load_pack<V>(ups + c);
    auto slope = load_pack<V>(slopes + c);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const float g = to_float(gate.v[i]);
      const float u = to_float(up.v[i]);
      const float d = to_float(slope.v[i]);
      const Sigmoid s = sigmoid_for<T>(g);
      slope.v[i] = from_float<T>(g * s.value * u);
      gate.v[i] = from_float<T>(d * u * (s.value * (1.0f + g * s.complement)));
      up.v[i] = from_float<T>(d * (g * s.value));
    }
    if (y != nullptr) store_pack(y + row * shape.width + c, slope);
    store_pack(dgates + c, gate);
    store_pack(dups + c, up);
  });
}

SwigluShape shape_of(const Tensor& gate_up, const Tensor& y) {
  const std::int64_t width = gate_up.dim(-1) / 2;
  return {width == 0 ? 0 : y.numel() / width, width};
}

}  // namespace

void swiglu_forward(const Tensor& gate_up, const Tensor& y, Stream& stream) {
  const SwigluShape shape = shape_of(gate_up, y);
  if (shape.rows == 0) return;
  with_device_float(y.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(gate_up);
    auto* to = elements<T>(y);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(shape.width, V, 4);
      forward_kernel<V><<<threads.blocks_for_rows(shape.rows), threads.block(), 0, cuda(stream)>>>(
          shape, from, to);
      check_launch("swiglu_forward");
    };
    with_row_pack<T>(shape.width, launch, from, to);
  });
}

void swiglu_backward(const Tensor& dy, const Tensor& gate_up, const Tensor& y,
                     const Tensor& dgate_up, Stream& stream) {
  const SwigluShape shape = shape_of(gate_up, dy);
  if (shape.rows == 0) return;
  with_device_float(dy.dtype(), [&]<class T>() {
    const auto* slopes = elements<const T>(dy);
    const auto* from = elements<const T>(gate_up);
    auto* again = elements<T>(y);
    auto* to = elements<T>(dgate_up);
    const auto launch = [&]<int V>() {
      const RowThreads threads = threads_for_rows(shape.width, V, 4);
      backward_kernel<V><<<threads.blocks_for_rows(shape.rows), threads.block(), 0, cuda(stream)>>>(
          shape, slopes, from, again, to);
      check_launch("swiglu_backward");
    };
    with_row_pack<T>(shape.width, launch, slopes, from, again, to);
  });
}

}  // namespace sherd::on_cuda
