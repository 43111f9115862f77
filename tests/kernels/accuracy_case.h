#pragma once

#include <algorithm>
#include <vector>

#include "core/label.h"
#include "tests/kernels/test_tensor.h"

namespace sherd::test {

/// Random logits with many equal ones, and labels of which about half are right.
struct Guesses {
  Guesses(DType dtype, std::int64_t row_count, std::int64_t class_count)
      : rows(row_count),
        classes(class_count),
        labels(random.integers(rows, static_cast<std::int32_t>(classes))),
        logits(dtype, {rows, classes}) {
    Values values;
    for (const std::int32_t v : random.integers(rows * classes, 9)) values.push_back(v);
    logits.assign(values);
    for (std::int64_t r = 0; r < rows; r += 2) {
      labels[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(guess(values, r));
    }
    for (std::size_t r = 3; r < labels.size(); r += 7) labels[r] = kIgnoredLabel;
  }

  /// The first of the largest.
  std::int64_t guess(const Values& all, std::int64_t row) const {
    const auto first = all.begin() + row * classes;
    return std::max_element(first, first + classes) - first;
  }
  std::int64_t correct() const {
    const Values all = logits.values();
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      count += labels[static_cast<std::size_t>(r)] == guess(all, r) ? 1 : 0;
    }
    return count;
  }

  Random random;
  std::int64_t rows, classes;
  std::vector<std::int32_t> labels;
  TestTensor logits;
};

}  // namespace sherd::test
