#pragma once

#include <cstdint>

namespace sherd {

/// A row-major matrix operand of `sgemm`: `stride` elements from row to row of what lies in memory,
/// read transposed or not.
struct MatrixOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c [rows, columns] = alpha * a [rows, depth] · b [depth, columns] + beta * c through CBLAS, in
/// the calling thread; c is not read when beta is 0. Sizes and strides fit an int.
void sgemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, float alpha,
           const MatrixOperand& a, const MatrixOperand& b, float beta, float* c,
           std::int64_t c_stride);

/// Makes the BLAS library compute each call in the calling thread alone: the parallel loops of this
/// folder hand whole tiles to threads, and bits must not depend on how many there are. Cheap; what
/// uses `sgemm` calls it first. Libraries other than OpenBLAS are set by their own environment.
void keep_blas_in_calling_thread();

}  // namespace sherd
