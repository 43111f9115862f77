#include "collectives/rank_sum.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "core/cuda/check.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1024;  // a few on each multiprocessor: the rest is a loop
constexpr int kPackBytes = 16;

struct StridedParts {
  const void* first;
  std::int64_t stride;
  int ranks;
  template <class T>
  __device__ const T* of(int r) const {
    return static_cast<const T*>(first) + r * stride;
  }
};

struct ScatteredParts {
  const void* data[kMostPeers];
  int ranks;
  template <class T>
  __device__ const T* of(int r) const {
    return static_cast<const T*>(data[r]);
  }
};

/// What sums are made in.
template <class T>
struct Sum {
  using Type = T;
};
template <>
struct Sum<__nv_bfloat16> {
  using Type = float;
};
template <>
struct Sum<__half> {
  using Type = float;
};
template <>
struct Sum<std::int32_t> {  // unsigned: a sum that leaves the range wraps around, as on CPUs
  using Type = std::uint32_t;
};
template <>
struct Sum<std::int64_t> {
  using Type = std::uint64_t;
};

template <class T, int n>
struct alignas(n * sizeof(T) < kPackBytes ? n * sizeof(T) : kPackBytes) Pack {
  T v[n];
};

/// `n` elements at a time, to which all addresses are aligned.
template <class T, class Out, int n, class Parts>
__global__ void sum_kernel(Parts parts, std::int64_t packs, Out* out) {
  using A = typename Sum<T>::Type;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; p < packs;
       p += step) {
    A sums[n];
    for (int r = 0; r < parts.ranks; ++r) {
      const auto pack = reinterpret_cast<const Pack<T, n>*>(parts.template of<T>(r))[p];
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const A term = static_cast<A>(pack.v[i]);
        sums[i] = r == 0 ? term : static_cast<A>(sums[i] + term);
      }
    }
    Pack<Out, n> result;
#pragma unroll
    for (int i = 0; i < n; ++i) result.v[i] = static_cast<Out>(sums[i]);
    reinterpret_cast<Pack<Out, n>*>(out)[p] = result;
  }
}

template <class T, class Out, int n, class Parts>
void launch(const Parts& parts, std::int64_t packs, Out* out, cudaStream_t stream) {
  if (packs == 0) return;
  const std::int64_t blocks = std::min((packs + kThreads - 1) / kThreads, kMostBlocks);
  sum_kernel<T, Out, n><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(parts, packs, out);
  check_launch("sum_in_rank_order");
}

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kPackBytes == 0;
}

bool is_aligned(const StridedParts& parts) { return is_aligned(parts.first); }
bool is_aligned(const ScatteredParts& parts) {
  return std::all_of(parts.data, parts.data + parts.ranks,
                     [](const void* part) { return is_aligned(part); });
}

StridedParts from(const StridedParts& parts, std::int64_t bytes) {
  return {static_cast<const std::byte*>(parts.first) + bytes, parts.stride, parts.ranks};
}
ScatteredParts from(ScatteredParts parts, std::int64_t bytes) {
  for (int r = 0; r < parts.ranks; ++r) {
    parts.data[r] = static_cast<const std::byte*>(parts.data[r]) + bytes;
  }
  return parts;
}

/// Packs of 16 bytes where the addresses allow it, and what is left over one by one.
template <class T, class Out, class Parts>
void sum(const Parts& parts, const Tensor& out, cudaStream_t stream) {
  constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));
  auto* to = static_cast<Out*>(out.data());
  const bool aligned = is_aligned(parts) && is_aligned(to);
  const std::int64_t packs = aligned ? out.numel() / kPack : 0;
  const std::int64_t packed = packs * kPack;
  launch<T, Out, kPack>(parts, packs, to, stream);
  launch<T, Out, 1>(from(parts, packed * static_cast<std::int64_t>(sizeof(T))),
                    out.numel() - packed, to + packed, stream);
}

template <class T, class Parts>
void sum_16_bits(const Parts& parts, DType dtype, const Tensor& out, cudaStream_t stream) {
  if (out.dtype() == DType::f32) return sum<T, float>(parts, out, stream);
  require(out.dtype() == dtype, "can't add {} to {}", name_of(dtype), name_of(out.dtype()));
  sum<T, T>(parts, out, stream);
}

}  // namespace

void sum_in_rank_order(const void* parts, DType dtype, std::int64_t stride, int ranks,
                       const Tensor& out, cudaStream_t stream) {
  const StridedParts strided{parts, stride, ranks};
  require(stride * size_of(dtype) % kPackBytes == 0 && out.dtype() == DType::f32,
          "parts lie at multiples of {} bytes and give f32, got {} elements and {}", kPackBytes,
          stride, name_of(out.dtype()));
  if (dtype == DType::bf16) return sum<__nv_bfloat16, float>(strided, out, stream);
  require(dtype == DType::f16, "expected bf16 or f16, got {}", name_of(dtype));
  sum<__half, float>(strided, out, stream);
}

void sum_in_rank_order(const RankParts& parts, DType dtype, const Tensor& out,
                       cudaStream_t stream) {
  ScatteredParts scattered{};
  std::copy(parts.data.begin(), parts.data.end(), scattered.data);
  scattered.ranks = parts.ranks;
  if (dtype == DType::bf16) return sum_16_bits<__nv_bfloat16>(scattered, dtype, out, stream);
  if (dtype == DType::f16) return sum_16_bits<__half>(scattered, dtype, out, stream);
  require(out.dtype() == dtype, "can't add {} to {}", name_of(dtype), name_of(out.dtype()));
  switch (dtype) {
    case DType::f32:
      return sum<float, float>(scattered, out, stream);
    case DType::f64:
      return sum<double, double>(scattered, out, stream);
    case DType::i32:
      return sum<std::int32_t, std::int32_t>(scattered, out, stream);
    case DType::i64:
      return sum<std::int64_t, std::int64_t>(scattered, out, stream);
    default:
      throw ArgumentError(fmt::format("can't add {} tensors", name_of(dtype)));
  }
}

}  // namespace sherd
