#pragma once

#include "kernels/accumulate.h"
#include "kernels/launch.cuh"

// Sums over rows, for gradients of vectors: strips of rows are summed by blocks into scratch, and strips are
// added in order. The cut depends on the shape alone, so the bits do too.

namespace sherd {

inline constexpr int kStripRows = 128;
inline constexpr int kColumnBlock = 128;

inline std::int64_t strips_of(std::int64_t rows) { return (rows + kStripRows - 1) / kStripRows; }
/// Scratch for sums of `sums` vectors of `width` over `rows`.
inline std::int64_t column_sums_bytes(std::int64_t rows, std::int64_t width, int sums = 1) {
  return strips_of(rows) * width * sums * static_cast<std::int64_t>(sizeof(float));
}

/// partial[strip, sum, column] = sum over the strip's rows of value(row, column)[sum].
template <int Sums, class F>
__global__ void strip_sums_kernel(std::int64_t rows, std::int64_t width, F value, float* partial) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnBlock + threadIdx.x;
  if (column >= width) return;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kStripRows;
  const std::int64_t last = first + kStripRows < rows ? first + kStripRows : rows;
  float sums[Sums] = {};
  for (std::int64_t r = first; r < last; ++r) value(r, column, sums);
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
    partial[(static_cast<std::int64_t>(blockIdx.y) * Sums + s) * width + column] = sums[s];
  }
}

template <int Sums, class G>
__global__ void add_strips_kernel(std::int64_t strips, std::int64_t width, const float* partial,
                                  Accumulate accumulate, Pack<G*, Sums> out) {
  const std::int64_t column = thread_index();
  if (column >= width) return;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
    float sum = accumulate == Accumulate::yes ? to_float(out.v[s][column]) : 0.0f;
    for (std::int64_t strip = 0; strip < strips; ++strip) {
      sum += partial[(strip * Sums + s) * width + column];
    }
    out.v[s][column] = from_float<G>(sum);
  }
}

/// out[s][column] (+)= sum over rows; `value(row, column, float* sums)` adds to its sums.
template <int Sums, class G, class F>
void column_sums(const char* name, std::int64_t rows, std::int64_t width, Accumulate accumulate,
                 Pack<G*, Sums> out, Stream& stream, F value) {
  if (width == 0) return;
  auto* partial = static_cast<float*>(
      cuda_stream(stream).scratch(column_sums_bytes(rows, width, Sums), name));
  const dim3 grid(blocks_for(width, kColumnBlock), static_cast<unsigned>(strips_of(rows)));
  if (rows > 0) {
    strip_sums_kernel<Sums><<<grid, kColumnBlock, 0, cuda(stream)>>>(rows, width, value, partial);
    check_launch(name);
  }
  add_strips_kernel<Sums, G><<<blocks_for(width), kBlock, 0, cuda(stream)>>>(
      strips_of(rows), width, partial, accumulate, out);
  check_launch(name);
}

}  // namespace sherd
