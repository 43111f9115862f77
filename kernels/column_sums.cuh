#pragma once

#include "kernels/accumulate.h"
#include "kernels/launch.cuh"
#include "kernels/partial_sums.h"

// Sums over rows, for gradients of vectors. Blocks sum strips of rows; what they find is added in
// order.

namespace sherd {

inline constexpr int kStripRows = 8;  ///< rows that a block of sums reads at a time

/// out[sum][column] (+)= partial[part, sum, index], in the order of the parts. Partial sums of
/// packs lie apart: index i of `packs` * `pack` is column i % packs * pack + i / packs.
template <class G>
struct PartialSums {
  const float* partial;
  std::int64_t parts, width;
  int pack;
  Accumulate accumulate;
  G* out[2];
};

/// 32 columns and kStripRows interleaved runs of parts a block; the sum is blockIdx.y.
template <class G>
__global__ void add_partial_sums_kernel(PartialSums<G> p) {
  __shared__ float runs[kStripRows][kWarp];
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const float* from = p.partial + blockIdx.y * p.width + index;
  float sum = 0.0f;
  if (index < p.width) {
    for (std::int64_t part = threadIdx.y; part < p.parts; part += kStripRows) {
      sum += from[part * gridDim.y * p.width];
    }
  }
  runs[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || index >= p.width) return;
  for (int run = 1; run < kStripRows; ++run) sum += runs[run][threadIdx.x];
  const std::int64_t packs = p.width / p.pack;
  G* out = (blockIdx.y == 0 ? p.out[0] : p.out[1]) + index % packs * p.pack + index / packs;
  *out = from_float<G>(p.accumulate == Accumulate::yes ? to_float(*out) + sum : sum);
}

template <class G>
void add_partial_sums(const char* name, const PartialSums<G>& sums, Stream& stream) {
  if (sums.width == 0) return;
  const dim3 grid(blocks_for(sums.width, kWarp), sums.out[1] == nullptr ? 1 : 2);
  add_partial_sums_kernel<<<grid, dim3(kWarp, kStripRows), 0, cuda(stream)>>>(sums);
  check_launch(name);
}

/// Where strip sums go: partial sums of strip after strip, or at once the result.
struct ToPartial {
  float* partial;
  std::int64_t width;
  __device__ void operator()(std::int64_t strip, std::int64_t column, float sum) const {
    partial[strip * width + column] = sum;
  }
};
template <class G>
struct ToResult {
  G* out;
  Accumulate accumulate;
  __device__ void operator()(std::int64_t, std::int64_t column, float sum) const {
    G* to = out + column;
    *to = from_float<G>(accumulate == Accumulate::yes ? to_float(*to) + sum : sum);
  }
};

/// A warp's lanes take V columns each, and the warps of a block every eighth row of its strip.
template <int V, class T, class To>
__global__ void strip_sums_kernel(const T* x, std::int64_t rows, std::int64_t width,
                                  std::int64_t strip_rows, To to) {
  __shared__ float sums[kStripRows][V * kWarp];
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kWarp * V;
  const std::int64_t column = first_column + threadIdx.x * V;
  const std::int64_t first = blockIdx.y * strip_rows;
  const std::int64_t last = first + strip_rows < rows ? first + strip_rows : rows;
  float mine[V] = {};
  if (column < width) {
#pragma unroll 4
    for (std::int64_t r = first + threadIdx.y; r < last; r += kStripRows) {
      const auto pack = load_pack<V>(x + r * width + column);
#pragma unroll
      for (int i = 0; i < V; ++i) mine[i] += to_float(pack.v[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) sums[threadIdx.y][i * kWarp + threadIdx.x] = mine[i];
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.y) * kWarp + static_cast<int>(threadIdx.x);
  for (int i = thread; i < V * kWarp; i += kStripRows * kWarp) {
    const std::int64_t at = first_column + i % kWarp * V + i / kWarp;
    float sum = sums[0][i];
    for (int run = 1; run < kStripRows; ++run) sum += sums[run][i];
    if (at < width) to(blockIdx.y, at, sum);
  }
}

/// out[column] (+)= sum over rows of x [rows, width].
template <class T, class G>
void column_sums(const char* name, const T* x, std::int64_t rows, std::int64_t width, G* out,
                 Accumulate accumulate, Stream& stream) {
  if (width == 0) return;
  const std::int64_t strips = column_strips(rows, width);
  const auto launch = [&]<int V, class To>(To to) {
    const dim3 grid(blocks_for(width, kWarp * V), static_cast<unsigned>(strips));
    strip_sums_kernel<V><<<grid, dim3(kWarp, kStripRows), 0, cuda(stream)>>>(
        x, rows, width, (rows + strips - 1) / strips, to);
    check_launch(name);
  };
  const auto sum_strips = [&]<class To>(To to) {
    const bool packed = width % kPack<T> == 0 && is_aligned(x);
    packed ? launch.template operator()<kPack<T>>(to) : launch.template operator()<1>(to);
  };
  if (strips == 1) return sum_strips(ToResult<G>{out, accumulate});
  auto* partial =
      static_cast<float*>(cuda_stream(stream).scratch(column_sums_bytes(rows, width), name));
  sum_strips(ToPartial{partial, width});
  add_partial_sums(name, PartialSums<G>{partial, strips, width, 1, accumulate, {out, nullptr}},
                   stream);
}

}  // namespace sherd
