#include "kernels/fixed_point.h"

#include "kernels/counting.cuh"
#include "kernels/cuda_kernels.h"
#include "kernels/exact_digits.h"

namespace sherd::on_cuda {
namespace {

/// high and low [n]; packs of two limbs where both rows of limbs are aligned.
template <int V, class T>
__global__ void split_kernel(const T* x, std::int64_t n, std::int64_t* high, std::int64_t* low,
                             bool accumulate, std::int64_t* non_finite) {
  std::int64_t rejected = 0;
  for (std::int64_t i = thread_index() * V; i < n; i += thread_count() * V) {
    const auto values = load_pack<V>(x + i);
    Pack<std::int64_t, V> highs{};
    Pack<std::int64_t, V> lows{};
    if (accumulate) {
      highs = load_pack<V>(high + i);
      lows = load_pack<V>(low + i);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const FixedPoint value = split_fixed(to_float(values.v[k]));
      rejected += value.rejected;
      highs.v[k] += value.high;
      lows.v[k] += value.low;
    }
    store_pack(high + i, highs);
    store_pack(low + i, lows);
  }
  __syncwarp();
  add_to_count(non_finite, rejected);
}

template <int V>
__global__ void join_kernel(const std::int64_t* high, const std::int64_t* low, std::int64_t n,
                            float* x) {
  for (std::int64_t i = thread_index() * V; i < n; i += thread_count() * V) {
    const auto highs = load_pack<V>(high + i);
    const auto lows = load_pack<V>(low + i);
    Pack<float, V> values;
#pragma unroll
    for (int k = 0; k < V; ++k) values.v[k] = join_fixed(highs.v[k], lows.v[k]);
    store_pack(x + i, values);
  }
}

/// Two limbs make 16 bytes; the second row of limbs is aligned where n is even.
constexpr int kLimbPack = 2;

template <class T>
bool are_packed(const T* x, const std::int64_t* limbs, std::int64_t n) {
  return n % kLimbPack == 0 && is_aligned(limbs) &&
         is_aligned(x, kLimbPack * static_cast<std::int64_t>(sizeof(T)));
}

}  // namespace

void to_fixed_point(const Tensor& x, const Tensor& limbs, bool accumulate, const Tensor& non_finite,
                    Stream& stream) {
  const std::int64_t n = x.numel();
  auto* high = limbs.as<std::int64_t>();
  with_device_float(x.dtype(), [&]<class T>() {
    const auto* from = elements<const T>(x);
    const auto launch = [&]<int V>() {
      split_kernel<V><<<blocks_for(n / V), kBlock, 0, cuda(stream)>>>(
          from, n, high, high + n, accumulate, non_finite.as<std::int64_t>());
      check_launch("to_fixed_point");
    };
    are_packed(from, high, n) ? launch.template operator()<kLimbPack>()
                              : launch.template operator()<1>();
  });
}

void from_fixed_point(const Tensor& limbs, const Tensor& x, Stream& stream) {
  const std::int64_t n = x.numel();
  const auto* high = limbs.as<std::int64_t>();
  auto* to = x.as<float>();
  const auto launch = [&]<int V>() {
    join_kernel<V><<<blocks_for(n / V), kBlock, 0, cuda(stream)>>>(high, high + n, n, to);
    check_launch("from_fixed_point");
  };
  are_packed(to, high, n) ? launch.template operator()<kLimbPack>()
                          : launch.template operator()<1>();
}

}  // namespace sherd::on_cuda
