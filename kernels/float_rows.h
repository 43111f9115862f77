#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/blas.h"

namespace sherd {

/// `rows` rows of `columns` values as a float operand: in place when they are float, else converted
/// into `storage`, row after row.
template <class T>
MatrixOperand as_float(const T* data, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                       float* storage) {
  if constexpr (std::is_same_v<T, float>) {
    return {data, stride, false};
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
      for (std::int64_t c = 0; c < columns; ++c) {
        storage[r * columns + c] = static_cast<float>(data[r * stride + c]);
      }
    }
    return {storage, columns, false};
  }
}

/// Rows of float sums, `stride` elements apart.
struct FloatSums {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// Zero sums for `rows` rows of `columns` of a result: in the result itself when it is float, else
/// in `storage`, from where `store_sums` rounds them into it.
template <class T>
FloatSums zero_sums(T* result, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                    float* storage) {
  FloatSums sums{storage, columns};
  if constexpr (std::is_same_v<T, float>) sums = {result, stride};
  for (std::int64_t r = 0; r < rows; ++r) std::fill_n(sums.data + r * sums.stride, columns, 0.0f);
  return sums;
}

template <class T>
void store_sums(const FloatSums& sums, T* result, std::int64_t stride, std::int64_t rows,
                std::int64_t columns) {
  if constexpr (std::is_same_v<T, float>) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      result[r * stride + c] = static_cast<T>(sums.data[r * sums.stride + c]);
    }
  }
}

/// Stack space of `kNumel` floats for rows that are not float, none for those that are.
template <class T, std::int64_t kNumel>
struct FloatStorage {
  alignas(64) float values[std::is_same_v<T, float> ? 1 : kNumel];
};

}  // namespace sherd
