#include "kernels/blas.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <vector>

using namespace sherd;

TEST_CASE("sgemm multiplies strided, transposed operands and does not read c when beta is 0") {
  keep_blas_in_calling_thread();
  // a is [2, 3] in rows of 4; b is [3, 2], lying transposed in rows of 5.
  const std::vector<float> a = {1, 2, 3, -99, 4, 5, 6, -99};
  const std::vector<float> b = {7, 9, 11, -99, -99, 8, 10, 12, -99, -99};
  std::vector<float> c(6, std::numeric_limits<float>::quiet_NaN());
  sgemm(2, 2, 3, 2.0f, {a.data(), 4, false}, {b.data(), 5, true}, 0.0f, c.data(), 3);
  CHECK(c[0] == 116);
  CHECK(c[1] == 128);
  CHECK(c[2] != c[2]);  // between the rows
  CHECK(c[3] == 278);
  CHECK(c[4] == 308);
  sgemm(2, 2, 3, 1.0f, {a.data(), 4, false}, {b.data(), 5, true}, 1.0f, c.data(), 3);
  CHECK(c[0] == 174);
  CHECK(c[4] == 462);
}
