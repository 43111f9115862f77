#pragma once

#include "kernels/launch.cuh"
#include "kernels/master_bits.h"
#include "kernels/master_parameters.h"

namespace sherd {

/// Elements that a thread takes of a flat shard at a time: 16 bytes of floats.
inline constexpr int kShardPack = kPack<float>;
template <int V>
using Floats = Pack<float, V>;

/// The f32 masters of parameters at rest (kernels/master_parameters.h), V at a time, as
/// kernels/master_view.h has them on CPUs; T is the device type of the values.
template <class T>
class MasterPacks;

template <>
class MasterPacks<float> {
 public:
  explicit MasterPacks(const MasterParameters& p) : value_(elements<float>(p.value)) {}
  bool is_packed() const { return is_aligned(value_); }
  template <int V>
  __device__ Floats<V> load(std::int64_t i) const {
    return load_pack<V>(value_ + i);
  }
  template <int V>
  __device__ void store(std::int64_t i, const Floats<V>& masters) const {
    store_pack(value_ + i, masters);
  }

 private:
  float* value_;
};

template <>
class MasterPacks<__nv_bfloat16> {
 public:
  explicit MasterPacks(const MasterParameters& p)
      : value_(elements<std::uint16_t>(p.value)), remainder_(elements<std::int16_t>(p.master)) {}
  bool is_packed() const {
    constexpr std::int64_t kBytes = kShardPack * static_cast<std::int64_t>(sizeof(*value_));
    return is_aligned(value_, kBytes) && is_aligned(remainder_, kBytes);
  }
  template <int V>
  __device__ Floats<V> load(std::int64_t i) const {
    const auto values = load_pack<V>(value_ + i);
    const auto remainders = load_pack<V>(remainder_ + i);
    Floats<V> masters;
#pragma unroll
    for (int k = 0; k < V; ++k) masters.v[k] = join_master({values.v[k], remainders.v[k]});
    return masters;
  }
  template <int V>
  __device__ void store(std::int64_t i, const Floats<V>& masters) const {
    Pack<std::uint16_t, V> values;
    Pack<std::int16_t, V> remainders;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const MasterBits bits = split_master(masters.v[k]);
      values.v[k] = bits.value;
      remainders.v[k] = bits.remainder;
    }
    store_pack(value_ + i, values);
    store_pack(remainder_ + i, remainders);
  }

 private:
  std::uint16_t* value_;
  std::int16_t* remainder_;
};

template <>
class MasterPacks<__half> {
 public:
  explicit MasterPacks(const MasterParameters& p)
      : value_(elements<__half>(p.value)), master_(elements<float>(p.master)) {}
  bool is_packed() const {
    return is_aligned(value_, kShardPack * static_cast<std::int64_t>(sizeof(*value_))) &&
           is_aligned(master_);
  }
  template <int V>
  __device__ Floats<V> load(std::int64_t i) const {
    return load_pack<V>(master_ + i);
  }
  template <int V>
  __device__ void store(std::int64_t i, const Floats<V>& masters) const {
    Pack<__half, V> values;
#pragma unroll
    for (int k = 0; k < V; ++k) values.v[k] = from_float<__half>(masters.v[k]);
    store_pack(value_ + i, values);
    store_pack(master_ + i, masters);
  }

 private:
  __half* value_;
  float* master_;
};

}  // namespace sherd
