#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/tensor.h"

namespace sherd::test {

/// A tensor over a vector's elements, of any dtype.
template <class T>
Tensor view_of(std::vector<T>& data) {
  return {data.data(), dtype_of<T>(), {static_cast<std::int64_t>(data.size())}};
}

/// Bit for bit, NaNs included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// A vector of 0xA5 bytes.
template <class T>
std::vector<T> poisoned(std::int64_t numel) {
  std::vector<T> result(static_cast<std::size_t>(numel));
  if (numel > 0) std::memset(static_cast<void*>(result.data()), 0xA5, result.size() * sizeof(T));
  return result;
}

}  // namespace sherd::test
