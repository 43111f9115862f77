#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// correct += the rows whose label has the largest logit; of equal ones the first counts. Rows with
/// a NaN are wrong, and rows whose label is ignored count nothing. logits [N, V] float dtype,
/// labels [N] i32, correct [1] i64.
void count_correct(const Tensor& logits, const Tensor& labels, const Tensor& correct,
                   Stream& stream);

}  // namespace sherd
