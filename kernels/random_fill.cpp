#include "kernels/random_fill.h"

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/operand_check.h"
#include "kernels/random_word.h"

namespace sherd {

void fill_random(const Tensor& x, Stream& stream) {
  OperandCheck("fill_random", stream).is_float(x, "x");
  if (x.numel() == 0) return;
  if (!stream.device().is_cpu()) return on_cuda::fill_random(x, stream);
  with_float(x.dtype(), [&]<class T>() {
    enqueue(stream, [n = x.numel(), out = x.as<T>()] {
      for_blocks(n, [out](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) out[i] = T(random_word(i));
      });
    });
  });
}

}  // namespace sherd
