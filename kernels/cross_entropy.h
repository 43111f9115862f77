#pragma once

#include "core/label.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

/// losses[n] = logsumexp(logits[n]) - logits[n, labels[n]], and 0 where the label is ignored.
/// logits [N, V] float dtype, labels [N] i32, losses [N] f32. Rows are read in chunks of the
/// vocabulary. A label outside [0, V) that is not ignored is a DataError thrown by the stream; on
/// CUDA it makes the loss of its row NaN, and its gradient zero.
void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const Tensor& losses,
                           Stream& stream);

/// The same losses, and logits becomes its own gradient in place: (softmax - onehot) * *scale, zero
/// where the label is ignored. `scale` is a 1-element f32 tensor read when the operation runs.
void cross_entropy_forward_backward(const Tensor& logits, const Tensor& labels,
                                    const Tensor& losses, const Tensor& scale, Stream& stream);

}  // namespace sherd
