#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// Fills a float tensor with numbers uniform in [-1, 1), the same in each run and on every kind of
/// device. For measurements: data decides the power that products draw, and zeros draw little.
void fill_random(const Tensor& x, Stream& stream);

}  // namespace sherd
