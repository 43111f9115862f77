#include "kernels/accuracy.h"

#include "core/cpu_stream.h"
#include "core/label.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"

namespace sherd {
namespace {

/// Whether no other of a row's logits stands before the label's.
template <class T>
bool is_correct(const T* logits, std::int64_t classes, std::int32_t label) {
  if (label < 0 || label >= classes) return false;
  const auto own = static_cast<float>(logits[label]);
  if (!(own == own)) return false;
  for (std::int64_t c = 0; c < classes; ++c) {
    const auto other = static_cast<float>(logits[c]);
    const bool behind = other < own || (other == own && c >= label);
    if (!behind) return false;
  }
  return true;
}

}  // namespace

void count_correct(const Tensor& logits, const Tensor& labels, const Tensor& correct,
                   Stream& stream) {
  const OperandCheck check("count_correct", stream);
  check.is_float(logits, "logits", 2);
  const std::int64_t rows = logits.dim(0), classes = logits.dim(1);
  check.is(labels, "labels", DType::i32, {rows});
  check.is(correct, "correct", DType::i64, {1});
  if (!stream.device().is_cpu()) return on_cuda::count_correct(logits, labels, correct, stream);
  with_float(logits.dtype(), [&]<class T>() {
    enqueue(stream, [=, from = logits.as<T>(), ids = labels.as<std::int32_t>(),
                     count = correct.as<std::int64_t>()] {
      for (std::int64_t r = 0; r < rows; ++r) {
        *count += is_correct(from + r * classes, classes, ids[r]) ? 1 : 0;
      }
    });
  });
}

}  // namespace sherd
