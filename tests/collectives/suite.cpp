#include "tests/collectives/suite.h"

#include <algorithm>
#include <array>
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/backend.h"
#include "core/rng.h"

namespace sherd::test {
namespace {

constexpr std::int64_t kArenaBytes = std::int64_t{8} << 20;
constexpr unsigned char kPoison = 0xA5;

template <class T>
T element_of(RngKey key, std::uint64_t i) {
  if constexpr (std::is_integral_v<T>) {
    const auto words = random_words(key, i);
    return static_cast<T>((std::uint64_t{words[1]} << 32) | words[0]);
  } else {
    // A product has many exponents, so that the order of a sum shows in its last bits.
    return static_cast<T>((2.0f * uniform(key, 2 * i) - 1.0f) * uniform(key, 2 * i + 1));
  }
}

template <class F>
decltype(auto) with_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::u8:
      return f.template operator()<std::uint8_t>();
    case DType::i16:
      return f.template operator()<std::int16_t>();
    case DType::i32:
      return f.template operator()<std::int32_t>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    case DType::f64:
      return f.template operator()<double>();
    default:
      return with_float(dtype, f);
  }
}

template <class T>
T read(const Bytes& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write(Bytes& bytes, std::size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

template <class T>
double value_at(const Bytes& bytes, std::size_t i) {
  if constexpr (std::is_same_v<T, double>) return read<T>(bytes, i);
  return static_cast<double>(static_cast<float>(read<T>(bytes, i)));
}

/// 0 for integers.
double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::epsilon();
    case DType::f32:
      return static_cast<double>(std::numeric_limits<float>::epsilon());
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0;
  }
}

/// One step of a reduction in the type that sums are made in.
template <class A>
A step(ReduceOp op, A a, A b) {
  if (op == ReduceOp::sum) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
  if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
  }
  return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
}

template <class T, class Out>
Bytes reduced_as(const std::vector<Bytes>& inputs, ReduceOp op) {
  using A = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  const std::size_t numel = inputs[0].size() / sizeof(T);
  Bytes result(numel * sizeof(Out));
  for (std::size_t i = 0; i < numel; ++i) {
    A value = static_cast<A>(read<T>(inputs[0], i));
    for (std::size_t r = 1; r < inputs.size(); ++r) {
      value = step(op, value, static_cast<A>(read<T>(inputs[r], i)));
    }
    write(result, i, Out(value));
  }
  return result;
}

/// Between the host and `device`, whose streams are idle.
void copy_now(const void* from, void* to, std::size_t bytes, Device device) {
  if (bytes == 0) return;
  if (device.is_cpu()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto stream = make_stream(device, "copy");
  copy_bytes(from, to, static_cast<std::int64_t>(bytes), *stream);
  stream->synchronize();
}

}  // namespace

Arena::Arena(Memory& memory) : buffer_(memory, kArenaBytes) { clear(); }

Tensor Arena::take(DType dtype, std::int64_t numel) {
  constexpr std::int64_t kStep = 8;  // of no use to vector instructions
  const Tensor x = buffer_.tensor(dtype, {numel}, used_);
  used_ = (used_ + x.size_bytes() + 2 * kStep) / kStep * kStep;
  return x;
}

void Arena::clear() {
  used_ = 0;
  const Bytes poison(static_cast<std::size_t>(kArenaBytes), std::byte{kPoison});
  assign(buffer_.tensor(DType::u8, {kArenaBytes}), poison);
}

Bytes bytes_of(const Tensor& x) {
  Bytes bytes(static_cast<std::size_t>(x.size_bytes()));
  copy_now(x.data(), bytes.data(), bytes.size(), x.device());
  return bytes;
}

void assign(const Tensor& x, std::span<const std::byte> bytes) {
  REQUIRE(static_cast<std::int64_t>(bytes.size()) == x.size_bytes());
  copy_now(bytes.data(), x.data(), bytes.size(), x.device());
}

Bytes random_bytes(DType dtype, std::int64_t numel, std::uint64_t round, int rank) {
  constexpr std::uint64_t kRanks = 1024;
  const RngKey key{Catch::getSeed(), round * kRanks + static_cast<std::uint64_t>(rank)};
  Bytes bytes(static_cast<std::size_t>(numel * size_of(dtype)));
  with_any(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < static_cast<std::size_t>(numel); ++i) {
      write(bytes, i, element_of<T>(key, i));
    }
  });
  return bytes;
}

Bytes reduced(const std::vector<Bytes>& inputs, DType dtype, DType out_dtype, ReduceOp op) {
  return with_any(dtype, [&]<class T>() {
    if (dtype == out_dtype) return reduced_as<T, T>(inputs, op);
    REQUIRE(out_dtype == DType::f32);
    return reduced_as<T, float>(inputs, op);
  });
}

bool same(const Bytes& got, const Bytes& expected, DType dtype, bool exactly, int terms) {
  if (got.size() != expected.size()) return false;
  const double precision = epsilon_of(dtype);
  if (exactly || precision == 0) return got == expected;
  const double bound = static_cast<double>(terms) * terms * precision;
  return with_any(dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      for (std::size_t i = 0; i < got.size() / sizeof(T); ++i) {
        if (!(std::abs(value_at<T>(got, i) - value_at<T>(expected, i)) <= bound)) return false;
      }
    }
    return true;
  });
}

std::vector<RangePattern> range_patterns(int size) {
  // Lengths as a function of the rank; then gaps between the ranges, or another order of them.
  const auto pack = [&](std::string name, const std::function<std::int64_t(int)>& length,
                        std::int64_t gap, bool reversed) {
    RangePattern pattern{std::move(name), gap, std::vector<Shard>(static_cast<std::size_t>(size))};
    for (int i = 0; i < size; ++i) {
      const int r = reversed ? size - 1 - i : i;
      pattern.ranges[static_cast<std::size_t>(r)] = {pattern.numel, length(r)};
      pattern.numel += length(r) + gap;
    }
    return pattern;
  };
  const auto first = [](std::int64_t count) {
    return [count](int r) { return std::int64_t{r < count ? 1 : 0}; };
  };
  return {
      pack(
          "even", [](int) { return 1000; }, 0, false),
      pack(
          "uneven", [](int r) { return 37 * r + 1; }, 0, false),
      pack(
          "every other rank empty", [](int r) { return r % 2 == 0 ? 0 : 501; }, 0, false),
      pack(
          "last rank alone", [&](int r) { return r == size - 1 ? 777 : 0; }, 0, false),
      pack(
          "gaps", [](int r) { return 100 + r; }, 5, false),
      pack(
          "reversed with gaps", [](int r) { return 64 - 3 * r; }, 3, true),
      pack("nothing", first(0), 0, false),
      pack("one element", first(1), 0, false),
      pack("one element fewer than ranks", first(size - 1), 0, false),
      pack(
          "one element more than ranks", [](int r) { return r == 0 ? 2 : 1; }, 0, false),
      pack(
          "long", [](int r) { return 30011 + 1000 * r; }, 0, false),
  };
}

}  // namespace sherd::test
