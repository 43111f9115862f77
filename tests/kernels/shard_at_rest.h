#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/master_parameters.h"
#include "kernels/update.h"
#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

namespace sherd::test {

/// A flat shard of parameters, stored as T, with its gradient and two state tensors.
template <class T>
struct ShardAtRest {
  using Master = std::conditional_t<std::is_same_v<T, bf16>, std::int16_t, float>;

  explicit ShardAtRest(const std::vector<float>& masters)
      : value(poisoned<T>(static_cast<std::int64_t>(masters.size()))),
        master(poisoned<Master>(static_cast<std::int64_t>(masters.size()))),
        gradient(masters.size()),
        first(masters.size()),
        second(masters.size()) {
    auto copy = masters;
    run([&](Stream& s) { store_master(view_of(copy), parameters(), s); });
  }

  std::int64_t numel() const { return static_cast<std::int64_t>(value.size()); }
  MasterParameters parameters() { return parameters({0, numel()}); }
  MasterParameters parameters(Shard shard) {
    const Tensor m = std::is_same_v<T, float> ? Tensor{} : view_of(master).flat(shard);
    return {view_of(value).flat(shard), m};
  }
  std::vector<float> masters() {
    auto result = poisoned<float>(numel());
    run([&](Stream& s) { load_master(parameters(), view_of(result), s); });
    return result;
  }
  bool same_bits_as(const ShardAtRest& other) const {
    return same_bits(value, other.value) && same_bits(master, other.master) &&
           same_bits(first, other.first) && same_bits(second, other.second);
  }

  std::vector<T> value;
  std::vector<Master> master;
  std::vector<float> gradient;
  std::vector<float> first, second;  ///< moments, or momentum and nothing
};

/// |got - want| <= tolerance, and not NaN.
inline void check_within(double got, double want, double tolerance) {
  if (std::abs(got - want) <= tolerance) return;
  FAIL("got " << got << ", the oracle has " << want << ", tolerance " << tolerance);
}

/// The segments of [shard.offset, shard.end()), counted from its start.
inline std::vector<DecaySegment> cut(const std::vector<DecaySegment>& segments, Shard shard) {
  std::vector<DecaySegment> result;
  for (const DecaySegment& s : segments) {
    const std::int64_t end = std::min(s.end, shard.end()) - shard.offset;
    if (end >= 0) result.push_back({end, s.weight_decay});
  }
  return result;
}

/// Cuts [0, numel) at random places.
template <class Engine>
std::vector<Shard> random_cuts(Engine& random, std::int64_t numel) {
  std::vector<Shard> result;
  for (std::int64_t at = 0; at < numel;) {
    const auto n = std::min<std::int64_t>(static_cast<std::int64_t>(random() % 20000), numel - at);
    result.push_back({at, n});
    at += n;
  }
  return result;
}

inline std::vector<float> random_floats(Random& random, std::int64_t n, double scale) {
  std::vector<float> result;
  for (const double v : random.values(n, -scale, scale)) result.push_back(static_cast<float>(v));
  return result;
}

}  // namespace sherd::test
