#pragma once

#include "kernels/launch.cuh"

// Products of 16 rows by one warp, for attention. A warp holds a 16 x 8n result as the tensor cores
// do: lane l has, of each 8 columns, columns 2 (l % 4) and + 1 of row l / 4 (elements 0 and 1) and
// of row l / 4 + 8 (elements 2 and 3). 16-bit operands go to the tensor cores (mma.sync m16n8k16,
// sm_80 and later), f32 to plain arithmetic; both sum in float.

namespace sherd {

inline constexpr int kWarpRows = 16;
using Quad = float[4];

/// Elements between rows of a tile in shared memory: rows are 16 bytes longer than wide, so that
/// the rows that a warp reads at once lie in different banks.
template <class T, int Width>
inline constexpr int kTileStride = Width + kPack<T>;

template <class T>
inline constexpr bool kHasTensorCores = sizeof(T) == 2;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Four 8 x 8 matrices of 16-bit elements; lane l names the row l % 8 of matrix l / 8.
__device__ inline void load_matrices(std::uint32_t (&out)[4], const void* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(at));
}
__device__ inline void load_transposed(std::uint32_t (&out)[4], const void* row) {
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(at));
}

/// sum += a · b, a 16 x 16 and b 16 x 8.
__device__ inline void multiply_add(Quad& sum, const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1, __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(Quad& sum, const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1, __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats as two neighbouring 16-bit elements, the first in the low half.
template <class T>
__device__ inline std::uint32_t pack_pair(float low, float high) {
  const Pack<T, 2> pair{{from_float<T>(low), from_float<T>(high)}};
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// scores [16, Columns] = left [16, Width] · right [Columns, Width]ᵀ; both tiles in shared memory.
template <int Width, int Columns, class T>
__device__ inline void multiply_rows(const T* left, const T* right, Quad (&scores)[Columns / 8]) {
  constexpr int kStride = kTileStride<T, Width>;
#pragma unroll
  for (int j = 0; j < Columns / 8; ++j) {
    scores[j][0] = scores[j][1] = scores[j][2] = scores[j][3] = 0.0f;
  }
  const int lane = lane_index();
  if constexpr (kHasTensorCores<T>) {
    const T* a_row = left + lane % 16 * kStride + lane / 16 * 8;
    const T* b_row = right + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
#pragma unroll
    for (int d = 0; d < Width; d += 16) {
      std::uint32_t a[4];
      load_matrices(a, a_row + d);
#pragma unroll
      for (int j = 0; j < Columns / 8; j += 2) {
        std::uint32_t b[4];
        load_matrices(b, b_row + j * 8 * kStride + d);
        multiply_add(scores[j], a, b[0], b[1], T{});
        multiply_add(scores[j + 1], a, b[2], b[3], T{});
      }
    }
  } else {
    const float* a_row = left + lane / 4 * kStride;
    const float* b_row = right + lane % 4 * 2 * kStride;
    using Four = Pack<float, 4>;
#pragma unroll 2
    for (int d = 0; d < Width; d += 4) {
      const Four a0 = *reinterpret_cast<const Four*>(a_row + d);
      const Four a1 = *reinterpret_cast<const Four*>(a_row + 8 * kStride + d);
#pragma unroll
      for (int j = 0; j < Columns / 8; ++j) {
        const Four b0 = *reinterpret_cast<const Four*>(b_row + j * 8 * kStride + d);
        const Four b1 = *reinterpret_cast<const Four*>(b_row + (j * 8 + 1) * kStride + d);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          scores[j][0] += a0.v[i] * b0.v[i];
          scores[j][1] += a0.v[i] * b1.v[i];
          scores[j][2] += a1.v[i] * b0.v[i];
          scores[j][3] += a1.v[i] * b1.v[i];
        }
      }
    }
  }
}

/// sum [16, Columns] += weights [16, Rows] · rows [Rows, Columns]; `rows` points at the first of
/// these columns of a tile of Width in shared memory. 16-bit elements round the weights to T.
template <int Width, int Rows, int Columns, class T>
__device__ inline void add_weighted_rows(const Quad (&weights)[Rows / 8], const T* rows,
                                         Quad (&sum)[Columns / 8]) {
  constexpr int kStride = kTileStride<T, Width>;
  const int lane = lane_index();
  if constexpr (kHasTensorCores<T>) {
    const T* row = rows + lane % 16 * kStride + lane / 16 * 8;
#pragma unroll
    for (int r = 0; r < Rows / 8; r += 2) {
      const Quad& near = weights[r];
      const Quad& far = weights[r + 1];
      const std::uint32_t a[4] = {pack_pair<T>(near[0], near[1]), pack_pair<T>(near[2], near[3]),
                                  pack_pair<T>(far[0], far[1]), pack_pair<T>(far[2], far[3])};
#pragma unroll
      for (int j = 0; j < Columns / 8; j += 2) {
        std::uint32_t b[4];
        load_transposed(b, row + r * 8 * kStride + j * 8);
        multiply_add(sum[j], a, b[0], b[1], T{});
        multiply_add(sum[j + 1], a, b[2], b[3], T{});
      }
    }
  } else {
    const float* row = rows + lane % 4 * 2;
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      // Row r's weights lie with lane r / 2 % 4 of the quad, which owns that column.
      const float w0 = __shfl_sync(0xffffffffu, weights[r / 8][r % 2], r / 2 % 4, 4);
      const float w1 = __shfl_sync(0xffffffffu, weights[r / 8][2 + r % 2], r / 2 % 4, 4);
#pragma unroll
      for (int j = 0; j < Columns / 8; ++j) {
        const auto v = *reinterpret_cast<const Pack<float, 2>*>(row + r * kStride + j * 8);
        sum[j][0] += w0 * v.v[0];
        sum[j][1] += w0 * v.v[1];
        sum[j][2] += w1 * v.v[0];
        sum[j][3] += w1 * v.v[1];
      }
    }
  }
}

}  // namespace sherd
