#include "kernels/rope.h"

#include <algorithm>
#include <cmath>

#include "core/cpu_stream.h"
#include "kernels/cuda_kernels.h"
#include "kernels/head_range.h"
#include "kernels/rope_check.h"
#include "kernels/rope_frequency.h"

namespace sherd {
namespace {

constexpr std::int64_t kPairs = 64;  // rotated with one table of sines and cosines on the stack

/// Cosines and sines of `count` pairs at one position.
struct Rotation {
  float cosine[kPairs];
  float sine[kPairs];

  Rotation(const double* frequency, std::int64_t count, std::int64_t position, double sign) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double angle = frequency[i] * static_cast<double>(position);
      cosine[i] = static_cast<float>(std::cos(angle));
      sine[i] = static_cast<float>(sign * std::sin(angle));
    }
  }

  /// Rotates pairs (a[i], b[i]).
  template <class T>
  void apply(T* a, T* b, std::int64_t count) const {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(a[i]);
      const auto y = static_cast<float>(b[i]);
      a[i] = static_cast<T>(x * cosine[i] - y * sine[i]);
      b[i] = static_cast<T>(y * cosine[i] + x * sine[i]);
    }
  }
};

/// Rotates pairs [first, first + count) of all heads of the range at all positions.
template <class T>
void rotate_pairs(T* packed, const HeadRange& range, std::int64_t positions, std::int64_t first,
                  std::int64_t count, const double* frequency, double sign) {
  const std::int64_t samples = range.tokens / positions;
  const std::int64_t half = range.width / 2;
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < positions; ++t) {
    const Rotation rotation(frequency, count, t, sign);
    for (std::int64_t b = 0; b < samples; ++b) {
      for (std::int64_t h = 0; h < range.heads; ++h) {
        T* head = packed + range.offset((b * positions + t) * range.heads + h) + first;
        rotation.apply(head, head + half, count);
      }
    }
  }
}

template <class T>
void run(T* packed, const HeadRange& range, std::int64_t positions, const RopeSpec& spec,
         double sign) {
  for (std::int64_t first = 0; first < range.width / 2; first += kPairs) {
    const std::int64_t count = std::min(kPairs, range.width / 2 - first);
    double frequency[kPairs];
    for (std::int64_t i = 0; i < count; ++i) {
      frequency[i] = pair_frequency(first + i, range.width, spec);
    }
    rotate_pairs(packed, range, positions, first, count, frequency, sign);
  }
}

}  // namespace

void check_rope(const OperandCheck& check, std::int64_t width, const RopeSpec& spec) {
  check.that(width % 2 == 0, fmt::format("heads of even size are rotated, got {}", width));
  check.that(spec.theta > 0.0, fmt::format("theta is positive, got {}", spec.theta));
  check.that(spec.scaling != RopeSpec::Scaling::llama3 ||
                 spec.low_frequency_factor < spec.high_frequency_factor,
             fmt::format("the low frequency factor is below the high one, got {} and {}",
                         spec.low_frequency_factor, spec.high_frequency_factor));
  check.that(spec.factor > 0.0, fmt::format("the scaling factor is positive, got {}", spec.factor));
}

void rope(const Tensor& qkv, int first_head, int heads, const RopeSpec& spec,
          RopeDirection direction, Stream& stream) {
  const OperandCheck check("rope", stream);
  const HeadRange range(check, qkv, first_head, heads);
  check_rope(check, range.width, spec);
  if (range.rows() == 0 || range.width == 0) return;
  if (!stream.device().is_cpu()) {
    return on_cuda::rope(qkv, first_head, heads, spec, direction, stream);
  }
  const std::int64_t positions = qkv.dim(1);
  const double sign = direction == RopeDirection::forward ? 1.0 : -1.0;
  with_float(qkv.dtype(), [&]<class T>() {
    enqueue(stream, [=, packed = qkv.as<T>()] { run(packed, range, positions, spec, sign); });
  });
}

}  // namespace sherd
