#pragma once

#include <cstdint>

namespace sherd {

/// A row-major matrix in memory, `stride` elements from row to row, read transposed or not.
template <class T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// c [rows, columns], contiguous, = addend + bias + a [rows, depth] · b [depth, columns].
template <class T, class C>
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  Matrix<T> a = {};
  Matrix<T> b = {};
  C* c = nullptr;
  const C* addend = nullptr;  ///< [rows, columns], contiguous, may be c; null: zero
  const T* bias = nullptr;    ///< [columns], the same for every row; null: zero
};

/// Computes the product on the threads of the calling stream, over tiles that depend on its shape
/// alone, with sums in float. T is float, bf16 or f16, C is T or float. Dimensions fit an int,
/// their products need not.
template <class T, class C>
void multiply(const Product<T, C>& product);

}  // namespace sherd
