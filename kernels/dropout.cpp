#include "kernels/dropout.h"

#include <algorithm>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/elementwise.h"

namespace sherd {
namespace {

constexpr std::int64_t kWords = 4;  // of one block of random numbers

/// Keeps or drops x[first, last), a block of random numbers at a time.
template <class T>
void drop_range(const T* x, T* y, std::int64_t first, std::int64_t last, float probability,
                RngKey key, std::uint64_t first_index) {
  const float scale = 1.0f / (1.0f - probability);
  for (std::int64_t i = first; i < last;) {
    const std::uint64_t index = first_index + static_cast<std::uint64_t>(i);
    const auto words = random_words(key, index / kWords);
    const auto skipped = static_cast<std::int64_t>(index % kWords);  // only at the start
    const std::int64_t count = std::min(kWords - skipped, last - i);
    for (std::int64_t k = 0; k < count; ++k) {
      const bool keep = unit_interval(words[static_cast<std::size_t>(skipped + k)]) >= probability;
      y[i + k] = T(keep ? static_cast<float>(x[i + k]) * scale : 0.0f);
    }
    i += count;
  }
}

}  // namespace

void dropout(const Tensor& x, const Tensor& y, float probability, RngKey key,
             std::uint64_t first_index, Stream& stream) {
  require(probability >= 0.0f && probability < 1.0f, "dropout takes 0 <= probability < 1, got {}",
          probability);
  require(x.dtype() == y.dtype() && x.numel() == y.numel(),
          "dropout takes tensors of one dtype and size, got {} {} and {} {}", name_of(x.dtype()),
          to_string(x.shape()), name_of(y.dtype()), to_string(y.shape()));
  const std::int64_t n = x.numel();
  if (probability == 0.0f) return copy(x, y, stream);
  with_float(x.dtype(), [&]<class T>() {
    if (n == 0) return;
    enqueue(stream, [=, from = x.as<T>(), to = y.as<T>()] {
      for_blocks(n, [=](std::int64_t first, std::int64_t last) {
        drop_range(from, to, first, last, probability, key, first_index);
      });
    });
  });
}

}  // namespace sherd
