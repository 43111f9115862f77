#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>

#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/tensor.h"
#include "kernels/operand_check.h"

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
  return with_float(
      dtype, [&]<class T>() -> decltype(auto) { return f.template operator()<DeviceType<T>>(); });
}

/// The same for an operand of `dtype` and sums of that dtype or f32: f.operator()<T, G>().
template <class F>
void with_device_sums(DType dtype, DType sum_dtype, F&& f) {
  with_float(dtype, [&]<class T>() {
    with_sum_of<T>(sum_dtype,
                   [&]<class G>() { f.template operator()<DeviceType<T>, DeviceType<G>>(); });
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

template <int N, class T>
__device__ inline Pack<T, N> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
template <int N, class T>
__device__ inline void store_pack(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

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

/// Combines what every warp of a block of at most 1024 threads found by `reduce` (warp_sum or
/// warp_max), the same on every thread, in a fixed tree; `nothing` stands for warps that are not
/// there.
template <class T, class Reduce>
__device__ inline T block_reduce(T value, T nothing, Reduce reduce) {
  __shared__ T partial[kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  value = reduce(value);
  __syncthreads();  // the last call's readers are done
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  const int warps = (static_cast<int>(blockDim.x) + kWarp - 1) / kWarp;
  return reduce(lane < warps ? partial[lane] : nothing);
}

/// Sum over a block of at most 1024 threads, the same on every thread, in a fixed tree.
template <class T>
__device__ inline T block_sum(T value) {
  return block_reduce(value, T{}, [](T v) { return warp_sum(v); });
}
__device__ inline float block_max(float value) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  return block_reduce(value, kLowest, [](float v) { return warp_max(v); });
}

/// What a block may have of shared memory on every device since compute capability 8.0.
inline constexpr std::int64_t kLeastSharedBytes = 99 * 1024;

/// Lets `kernel` be launched with `bytes` of dynamic shared memory.
template <class Kernel>
void allow_shared(Kernel* kernel, std::int64_t bytes) {
  constexpr std::int64_t kAlwaysAllowed = 48 * 1024;
  if (bytes <= kAlwaysAllowed) return;
  SHERD_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes)));
}

}  // namespace sherd
