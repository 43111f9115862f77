#include "kernels/elementwise.h"

#include "kernels/cuda_kernels.h"
#include "kernels/map.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct Add {
  __device__ T operator()(T, T x, T y) const { return from_float<T>(to_float(x) + to_float(y)); }
};

template <class From, class To>
struct Cast {
  __device__ To operator()(To, From x) const { return from_float<To>(to_float(x)); }
};

template <class T>
struct Accumulate32 {
  __device__ float operator()(float sum, T x) const { return sum + to_float(x); }
};

struct Accumulate64 {
  __device__ std::int64_t operator()(std::int64_t sum, std::int64_t x) const { return sum + x; }
};

}  // namespace

void add(const Tensor& a, const Tensor& b, const Tensor& out, Stream& stream) {
  with_device_float(a.dtype(), [&]<class T>() {
    map("add", a.numel(), stream, Add<T>{}, elements<T>(out), elements<const T>(a),
        elements<const T>(b));
  });
}

void cast(const Tensor& a, const Tensor& out, Stream& stream) {
  with_device_float(a.dtype(), [&]<class From>() {
    with_device_float(out.dtype(), [&]<class To>() {
      map("cast", a.numel(), stream, Cast<From, To>{}, elements<To>(out), elements<const From>(a));
    });
  });
}

void accumulate_into(const Tensor& x, const Tensor& sum, Stream& stream) {
  if (sum.dtype() == DType::i64) {
    map("accumulate_into", x.numel(), stream, Accumulate64{}, elements<std::int64_t>(sum),
        elements<const std::int64_t>(x));
    return;
  }
  with_device_float(x.dtype(), [&]<class T>() {
    map("accumulate_into", x.numel(), stream, Accumulate32<T>{}, elements<float>(sum),
        elements<const T>(x));
  });
}

void fill_zero(const Tensor& x, Stream& stream) {
  if (x.numel() == 0) return;
  SHERD_CHECK(cudaMemsetAsync(x.data(), 0, static_cast<std::size_t>(x.size_bytes()), cuda(stream)));
}

void copy(const Tensor& x, const Tensor& out, Stream& stream) {
  if (x.numel() == 0 || x.data() == out.data()) return;
  SHERD_CHECK(cudaMemcpyAsync(out.data(), x.data(), static_cast<std::size_t>(x.size_bytes()),
                              cudaMemcpyDeviceToDevice, cuda(stream)));
}

}  // namespace sherd::on_cuda
