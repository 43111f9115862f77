#pragma once

#include "kernels/first_token.h"
#include "tests/kernels/oracle.h"
#include "tests/kernels/test_tensor.h"

namespace sherd::test {

/// Operands of both passes, and what they become.
struct FirstTokens {
  FirstTokens(DType dtype, std::int64_t sample_count, std::int64_t token_count,
              std::int64_t columns)
      : samples(sample_count),
        tokens(token_count),
        width(columns),
        x(random.tensor(dtype, {samples, tokens, width})),
        dy(random.tensor(dtype, {samples, width})),
        y(dtype, {samples, width}),
        dx(dtype, {samples, tokens, width}) {}

  Values first() const {
    const Values from = x.values();
    Values want;
    for (std::int64_t i = 0; i < samples * width; ++i) {
      want.push_back(oracle::at(from, i / width * tokens * width + i % width));
    }
    return want;
  }
  Values spread() const {
    const Values from = dy.values();
    Values want = oracle::zeros(samples * tokens * width);
    for (std::int64_t i = 0; i < samples * width; ++i) {
      oracle::at(want, i / width * tokens * width + i % width) = oracle::at(from, i);
    }
    return want;
  }

  Random random;
  std::int64_t samples, tokens, width;
  TestTensor x, dy, y, dx;
};

}  // namespace sherd::test
