#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace sherd {

enum class DType : std::uint8_t { u8, i16, i32, i64, f16, bf16, f32, f64 };

/// Bytes of one element.
int size_of(DType dtype);
/// "f32", "bf16", ...
std::string_view name_of(DType dtype);

/// bfloat16 in memory; arithmetic is done in float.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  /// Rounds to nearest even; NaN stays NaN.
  explicit bf16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
    bits = static_cast<std::uint16_t>(nan ? (u >> 16) | 0x40u : rounded >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// IEEE binary16 in memory; arithmetic is done in float. Bits, since device compilers know no
/// _Float16.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  /// Rounds to nearest even; beyond the range it is infinite.
  explicit f16(float value) : bits(std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<f16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}

/// Calls `f.template operator()<T>()` with the element type of a trainable dtype (f32, bf16, f16).
template <class F>
decltype(auto) with_float(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::f16:
      return f.template operator()<f16>();
    default:
      throw ArgumentError(fmt::format("expected f32, bf16 or f16, got {}", name_of(dtype)));
  }
}

}  // namespace sherd
