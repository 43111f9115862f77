#include "kernels/blas.h"

#include <cblas.h>

#include <algorithm>

extern "C" {
// OpenBLAS's own functions; null when another CBLAS is linked.
[[gnu::weak]] void openblas_set_num_threads(int threads);
[[gnu::weak]] int openblas_get_num_threads(void);
}

namespace sherd {
namespace {

int as_int(std::int64_t n) { return static_cast<int>(n); }

CBLAS_TRANSPOSE transpose(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void sgemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, float alpha,
           const MatrixOperand& a, const MatrixOperand& b, float beta, float* c,
           std::int64_t c_stride) {
  cblas_sgemm(CblasRowMajor, transpose(a.transposed), transpose(b.transposed), as_int(rows),
              as_int(columns), as_int(depth), alpha, a.data, as_int(a.stride), b.data,
              as_int(b.stride), beta, c, as_int(c_stride));
}

void keep_blas_in_calling_thread() {
  if (openblas_set_num_threads == nullptr || openblas_get_num_threads == nullptr) return;
  if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
}

}  // namespace sherd
