#include "collectives/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

namespace sherd {
namespace {

/// What elements are added in. Unsigned because sums of integers may wrap.
template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};
template <>
struct Wide<std::int32_t> {
  using type = std::uint32_t;
};
template <>
struct Wide<std::int64_t> {
  using type = std::uint64_t;
};

struct Sum {
  template <class T>
  using Accumulator = typename Wide<T>::type;
  template <class A>
  static A combine(A a, A b) {
    return a + b;
  }
};

template <class A>
bool is_nan(A value) {
  if constexpr (std::is_floating_point_v<A>) return std::isnan(value);
  return false;
}

/// Signed integers and floats compare as themselves; 16-bit floats as float.
template <class T>
using Ordered = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

struct Min {
  template <class T>
  using Accumulator = Ordered<T>;
  template <class A>
  static A combine(A a, A b) {
    return b < a || is_nan(b) ? b : a;
  }
};

struct Max {
  template <class T>
  using Accumulator = Ordered<T>;
  template <class A>
  static A combine(A a, A b) {
    return b > a || is_nan(b) ? b : a;
  }
};

// A block of accumulators stays in the first-level cache while the sources stream by, and lets
// `out` be one of the sources.
constexpr std::int64_t kBlock = 2048;

template <class Op, class T, class Out>
void reduce_blocks(std::span<const void* const> sources, std::int64_t numel, Out* out) {
  using A = typename Op::template Accumulator<T>;
  std::array<A, kBlock> block;
  for (std::int64_t first = 0; first < numel; first += kBlock) {
    const auto n = static_cast<std::size_t>(std::min(kBlock, numel - first));
    const T* source = static_cast<const T*>(sources[0]) + first;
    for (std::size_t i = 0; i < n; ++i) block[i] = static_cast<A>(source[i]);
    for (std::size_t r = 1; r < sources.size(); ++r) {
      source = static_cast<const T*>(sources[r]) + first;
      for (std::size_t i = 0; i < n; ++i) {
        block[i] = Op::combine(block[i], static_cast<A>(source[i]));
      }
    }
    for (std::size_t i = 0; i < n; ++i) out[first + static_cast<std::int64_t>(i)] = Out(block[i]);
  }
}

template <class Op, class T>
void reduce_as(std::span<const void* const> sources, std::int64_t numel, void* out,
               DType out_dtype) {
  constexpr bool kIsNarrow = !std::is_arithmetic_v<T>;
  if (out_dtype == dtype_of<T>()) {
    reduce_blocks<Op, T, T>(sources, numel, static_cast<T*>(out));
  } else if (kIsNarrow && out_dtype == DType::f32) {
    reduce_blocks<Op, T, float>(sources, numel, static_cast<float*>(out));
  } else {
    throw ArgumentError(
        fmt::format("can't reduce {} to {}; give the same dtype, or f32 for a "
                    "16-bit float",
                    name_of(dtype_of<T>()), name_of(out_dtype)));
  }
}

template <class Op>
void reduce_with(std::span<const void* const> sources, DType dtype, std::int64_t numel, void* out,
                 DType out_dtype) {
  switch (dtype) {
    case DType::f32:
      return reduce_as<Op, float>(sources, numel, out, out_dtype);
    case DType::f64:
      return reduce_as<Op, double>(sources, numel, out, out_dtype);
    case DType::bf16:
      return reduce_as<Op, bf16>(sources, numel, out, out_dtype);
    case DType::f16:
      return reduce_as<Op, f16>(sources, numel, out, out_dtype);
    case DType::i32:
      return reduce_as<Op, std::int32_t>(sources, numel, out, out_dtype);
    case DType::i64:
      return reduce_as<Op, std::int64_t>(sources, numel, out, out_dtype);
    default:
      throw ArgumentError(fmt::format("can't reduce {} tensors", name_of(dtype)));
  }
}

}  // namespace

void reduce_sources(std::span<const void* const> sources, DType dtype, std::int64_t numel,
                    ReduceOp op, void* out, DType out_dtype) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_with<Sum>(sources, dtype, numel, out, out_dtype);
    case ReduceOp::min:
      return reduce_with<Min>(sources, dtype, numel, out, out_dtype);
    case ReduceOp::max:
      return reduce_with<Max>(sources, dtype, numel, out, out_dtype);
  }
}

}  // namespace sherd
