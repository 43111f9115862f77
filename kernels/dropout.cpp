#include "kernels/dropout.h"

#include <algorithm>
#include <array>

#include "core/cpu_stream.h"
#include "kernels/blocks.h"
#include "kernels/cuda_kernels.h"
#include "kernels/elementwise.h"
#include "kernels/flat_check.h"

namespace sherd {
namespace {

constexpr std::uint64_t kWords = 4;  // of one block of random numbers
constexpr std::size_t kTileBlocks = 64;
constexpr std::size_t kTile = kTileBlocks * kWords;

/// The numbers of kTileBlocks blocks of random words from `block` on.
void draw_tile(RngKey key, std::uint64_t block, std::array<float, kTile>& numbers) {
#pragma omp simd
  for (std::size_t b = 0; b < kTileBlocks; ++b) {
    const auto [w0, w1, w2, w3] = random_words(key, block + b);
    numbers[4 * b] = unit_interval(w0);
    numbers[4 * b + 1] = unit_interval(w1);
    numbers[4 * b + 2] = unit_interval(w2);
    numbers[4 * b + 3] = unit_interval(w3);
  }
}

template <class T>
struct DropoutOperands {
  const T* x;
  const T* residual;  ///< may be null
  T* y;
  float probability;
  DropoutKey key;
  std::uint64_t first_index;
};

/// Keeps or drops x[first, last), a tile of random numbers at a time.
template <class T>
void drop_range(const DropoutOperands<T>& o, std::int64_t first, std::int64_t last) {
  const float probability = o.probability;
  const float scale = 1.0f / (1.0f - probability);
  const bool add = o.residual != nullptr;
  const T* x = o.x;
  const T* residual = add ? o.residual : x;
  T* y = o.y;
  std::array<float, kTile> numbers;
  const RngKey key = current(o.key);
  for (std::int64_t i = first; i < last;) {
    const std::uint64_t index = o.first_index + static_cast<std::uint64_t>(i);
    draw_tile(key, index / kWords, numbers);
    const float* number = numbers.data() + index % kWords;  // not 0 only for the first tile
    const auto rest = static_cast<std::int64_t>(kTile - index % kWords);
    const std::int64_t count = std::min(rest, last - i);
#pragma omp simd
    for (std::int64_t k = 0; k < count; ++k) {
      const float kept = number[k] >= probability ? static_cast<float>(x[i + k]) * scale : 0.0f;
      y[i + k] = T(add ? static_cast<float>(residual[i + k]) + kept : kept);
    }
    i += count;
  }
}

/// A residual that is not there is undefined.
void run_dropout(const Tensor& x, const Tensor& residual, const Tensor& y, float probability,
                 const DropoutKey& key, std::uint64_t first_index, Stream& stream) {
  const std::int64_t n = x.numel();
  if (n == 0) return;
  if (!stream.device().is_cpu()) {
    return on_cuda::dropout(x, residual, y, probability, key, first_index, stream);
  }
  with_float(x.dtype(), [&]<class T>() {
    const DropoutOperands<T> operands{x.as<T>(), static_cast<const T*>(residual.data()),
                                      y.as<T>(), probability,
                                      key,       first_index};
    enqueue(stream, [=] {
      for_blocks(n,
                 [&](std::int64_t first, std::int64_t last) { drop_range(operands, first, last); });
    });
  });
}

}  // namespace

void dropout(const Tensor& x, const Tensor& y, float probability, const DropoutKey& key,
             std::uint64_t first_index, Stream& stream) {
  require(probability >= 0.0f && probability < 1.0f, "dropout takes 0 <= probability < 1, got {}",
          probability);
  const OperandCheck check("dropout", stream);
  check.is_float(x, "x");
  check_flat(check, y, "y", x.dtype(), x.numel());
  if (probability == 0.0f) return copy(x, y, stream);
  run_dropout(x, {}, y, probability, key, first_index, stream);
}

void dropout(const Tensor& x, const Tensor& residual, const Tensor& y, float probability,
             const DropoutKey& key, std::uint64_t first_index, Stream& stream) {
  require(probability > 0.0f && probability < 1.0f,
          "dropout onto a residual takes 0 < probability < 1, got {}", probability);
  const OperandCheck check("dropout", stream);
  check.is_float(x, "x");
  check_flat(check, residual, "residual", x.dtype(), x.numel());
  check_flat(check, y, "y", x.dtype(), x.numel());
  run_dropout(x, residual, y, probability, key, first_index, stream);
}

}  // namespace sherd
