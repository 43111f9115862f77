#include "kernels/product.h"

#include <algorithm>
#include <type_traits>

#include "core/dtype.h"
#include "kernels/blas.h"
#include "kernels/float_rows.h"

namespace sherd {
namespace {

// Each cut of a float product packs the other operand once more, so tiles are as long as is fair to
// a few threads: about eight of them, none longer than kLongest or shorter than kShortest.
constexpr std::int64_t kParts = 8;
constexpr std::int64_t kShortest = 256;
constexpr std::int64_t kLongest = 512;
// Sides of the blocks of 16-bit operands that are converted on the stack: 320 KiB in all.
constexpr std::int64_t kSide = 128;
constexpr std::int64_t kDepth = 256;

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Cuts of a [rows, columns] result.
struct Grid {
  std::int64_t rows, columns, tile_rows, tile_columns;
  std::int64_t across() const { return ceil_divide(columns, tile_columns); }
  std::int64_t count() const { return ceil_divide(rows, tile_rows) * across(); }
};

struct Tile {
  Tile(const Grid& grid, std::int64_t i)
      : row(i / grid.across() * grid.tile_rows),
        column(i % grid.across() * grid.tile_columns),
        rows(std::min(grid.tile_rows, grid.rows - row)),
        columns(std::min(grid.tile_columns, grid.columns - column)) {}
  std::int64_t row, column, rows, columns;
};

/// The part of the longer side that one tile takes; a multiple of what register blocks divide.
std::int64_t tile_length(std::int64_t side) {
  constexpr std::int64_t kRegisterBlock = 16;
  const std::int64_t wanted = std::clamp(ceil_divide(side, kParts), kShortest, kLongest);
  const std::int64_t even = ceil_divide(side, ceil_divide(side, wanted));
  return ceil_divide(even, kRegisterBlock) * kRegisterBlock;
}

Grid float_grid(std::int64_t rows, std::int64_t columns) {
  if (rows >= columns) return {rows, columns, tile_length(rows), columns};
  return {rows, columns, rows, tile_length(columns)};
}

/// Element (row, column) of what `m` is read as.
template <class T>
const T* at(const Matrix<T>& m, std::int64_t row, std::int64_t column) {
  return m.transposed ? m.data + column * m.stride + row : m.data + row * m.stride + column;
}

/// Writes what the product adds to into `out`, row after row `stride` apart.
template <class T, class C>
void start_tile(const Product<T, C>& p, const Tile& tile, float* out, std::int64_t stride) {
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    float* row = out + r * stride;
    if (p.addend == nullptr) {
      std::fill_n(row, tile.columns, 0.0f);
    } else {
      const C* addend = p.addend + (tile.row + r) * p.columns + tile.column;
      for (std::int64_t i = 0; i < tile.columns; ++i) row[i] = static_cast<float>(addend[i]);
    }
    if (p.bias == nullptr) continue;
    const T* bias = p.bias + tile.column;
    for (std::int64_t i = 0; i < tile.columns; ++i) row[i] += static_cast<float>(bias[i]);
  }
}

void multiply_tile(const Product<float, float>& p, const Tile& tile) {
  float* c = p.c + tile.row * p.columns + tile.column;
  const bool start_in_blas = p.addend == nullptr && p.bias == nullptr && p.depth > 0;
  const bool is_started = p.addend == p.c && p.bias == nullptr;
  if (!start_in_blas && !is_started) start_tile(p, tile, c, p.columns);
  if (p.depth == 0) return;
  sgemm(tile.rows, tile.columns, p.depth, 1.0f, {at(p.a, tile.row, 0), p.a.stride, p.a.transposed},
        {at(p.b, 0, tile.column), p.b.stride, p.b.transposed}, start_in_blas ? 0.0f : 1.0f, c,
        p.columns);
}

/// Rows and columns [row, row + rows) x [column, column + columns) of what `m` is read as, in
/// float.
template <class T>
MatrixOperand block(const Matrix<T>& m, std::int64_t row, std::int64_t column, std::int64_t rows,
                    std::int64_t columns, float* storage) {
  MatrixOperand result = as_float(at(m, row, column), m.stride, m.transposed ? columns : rows,
                                  m.transposed ? rows : columns, storage);
  result.transposed = m.transposed;
  return result;
}

template <class T, class C>
void multiply_tile(const Product<T, C>& p, const Tile& tile) {
  alignas(64) float a[kSide * kDepth];
  alignas(64) float b[kSide * kDepth];
  alignas(64) float sums[kSide * kSide];
  start_tile(p, tile, sums, kSide);
  for (std::int64_t k = 0; k < p.depth; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, p.depth - k);
    sgemm(tile.rows, tile.columns, depth, 1.0f, block(p.a, tile.row, k, tile.rows, depth, a),
          block(p.b, k, tile.column, depth, tile.columns, b), 1.0f, sums, kSide);
  }
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    C* c = p.c + (tile.row + r) * p.columns + tile.column;
    for (std::int64_t i = 0; i < tile.columns; ++i) c[i] = static_cast<C>(sums[r * kSide + i]);
  }
}

}  // namespace

template <class T, class C>
void multiply(const Product<T, C>& product) {
  if (product.rows == 0 || product.columns == 0) return;
  keep_blas_in_calling_thread();
  const Grid grid = std::is_same_v<T, float> ? float_grid(product.rows, product.columns)
                                             : Grid{product.rows, product.columns, kSide, kSide};
  const std::int64_t count = grid.count();
#pragma omp parallel for schedule(dynamic) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) multiply_tile(product, Tile(grid, i));
}

template void multiply(const Product<float, float>&);
template void multiply(const Product<bf16, bf16>&);
template void multiply(const Product<bf16, float>&);
template void multiply(const Product<f16, f16>&);
template void multiply(const Product<f16, float>&);

}  // namespace sherd
