#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/tensor.h"

// What all .cu files share: device element types, 16-byte packs, and launch sizes.

namespace sherd {

/// The device's own type for a host element type.
template <class T>
struct DeviceTypeOf {
  using type = T;
};
template <>
struct DeviceTypeOf<bf16> {
  using type = __nv_bfloat16;
};
template <>
struct DeviceTypeOf<f16> {
  using type = __half;
};
template <class T>
using DeviceType = typename DeviceTypeOf<T>::type;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_float(__half x) { return __half2float(x); }

template <class T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

/// with_float for kernels: T is the device's element type.
template <class F>
decltype(auto) with_device_float(DType dtype, F&& f) {
  return with_float(dtype, [&]<class T>() -> decltype(auto) {
    return f.template operator()<DeviceType<T>>();
  });
}

/// A tensor's elements as a device type.
template <class T>
T* elements(const Tensor& tensor) {
  return static_cast<T*>(tensor.data());
}

/// N elements that are loaded and stored at once; 16 bytes where N is kPack<T>.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};
inline constexpr int kPackBytes = 16;
template <class T>
inline constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));

inline bool is_aligned(const void* pointer, std::int64_t bytes = kPackBytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0;
}

inline constexpr int kBlock = 256;
inline constexpr int kWarp = 32;

/// Blocks for `items` threads' work, capped: kernels loop with the grid as their stride.
inline unsigned blocks_for(std::int64_t items, int block = kBlock) {
  constexpr std::int64_t kMostBlocks = std::int64_t{1} << 30;
  const std::int64_t blocks = (items + block - 1) / block;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// Sum over a warp, the same on every lane, in a fixed tree.
template <class T>
__device__ inline T warp_sum(T value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

/// Sum over a block of at most 1024 threads, the same on every thread, in a fixed tree.
template <class T>
__device__ inline T block_sum(T value) {
  __shared__ T partial[kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  value = warp_sum(value);
  __syncthreads();  // the last call's readers are done
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  const int warps = (static_cast<int>(blockDim.x) + kWarp - 1) / kWarp;
  return warp_sum(lane < warps ? partial[lane] : T{});
}

}  // namespace sherd
