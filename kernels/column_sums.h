#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/accumulate.h"

namespace sherd {

/// out[c] = (or +=) the sum over rows r, in order and in double, of term(r, c). Columns go to
/// threads, so the bits do not depend on how many there are.
template <class G, class Term>
void sum_columns(std::int64_t rows, std::int64_t columns, G* out, Accumulate accumulate,
                 const Term& term) {
  constexpr std::int64_t kColumns = 64;
  const std::int64_t groups = (columns + kColumns - 1) / kColumns;
#pragma omp parallel for schedule(static) if (groups > 1)
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t first = group * kColumns;
    const std::int64_t count = std::min(kColumns, columns - first);
    double sums[kColumns] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
      for (std::int64_t c = 0; c < count; ++c) sums[c] += term(r, first + c);
    }
    for (std::int64_t c = 0; c < count; ++c) {
      const double before = accumulate == Accumulate::yes ? static_cast<float>(out[first + c]) : 0;
      out[first + c] = static_cast<G>(static_cast<float>(before + sums[c]));
    }
  }
}

}  // namespace sherd
