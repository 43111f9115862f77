#include "kernels/master_parameters.h"

#include "kernels/cuda_kernels.h"
#include "kernels/master_packs.cuh"

namespace sherd::on_cuda {
namespace {

template <int V, class T>
__global__ void store_kernel(const float* from, MasterPacks<T> parameters, std::int64_t n) {
  const std::int64_t packs = n / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    parameters.store(p * V, load_pack<V>(from + p * V));
  }
  for (std::int64_t i = packs * V + thread_index(); i < n; i += thread_count()) {
    parameters.store(i, load_pack<1>(from + i));
  }
}

template <int V, class T>
__global__ void load_kernel(MasterPacks<T> parameters, float* to, std::int64_t n) {
  const std::int64_t packs = n / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    store_pack(to + p * V, parameters.template load<V>(p * V));
  }
  for (std::int64_t i = packs * V + thread_index(); i < n; i += thread_count()) {
    to[i] = parameters.template load<1>(i).v[0];
  }
}

/// Calls f.operator()<V, T>() with the parameters as packs of T and their width V.
template <class F>
void with_packs(const MasterParameters& parameters, const float* master, F&& f) {
  with_device_float(parameters.value.dtype(), [&]<class T>() {
    const MasterPacks<T> packs(parameters);
    if (packs.is_packed() && is_aligned(master)) {
      f.template operator()<kShardPack>(packs);
    } else {
      f.template operator()<1>(packs);
    }
  });
}

}  // namespace

void store_master(const Tensor& master_f32, const MasterParameters& parameters, Stream& stream) {
  const std::int64_t n = master_f32.numel();
  const auto* from = master_f32.as<float>();
  with_packs(parameters, from, [&]<int V, class T>(const MasterPacks<T>& packs) {
    store_kernel<V><<<blocks_for((n + V - 1) / V), kBlock, 0, cuda(stream)>>>(from, packs, n);
    check_launch("store_master");
  });
}

void load_master(const MasterParameters& parameters, const Tensor& master_f32, Stream& stream) {
  const std::int64_t n = master_f32.numel();
  auto* to = master_f32.as<float>();
  with_packs(parameters, to, [&]<int V, class T>(const MasterPacks<T>& packs) {
    load_kernel<V><<<blocks_for((n + V - 1) / V), kBlock, 0, cuda(stream)>>>(packs, to, n);
    check_launch("load_master");
  });
}

}  // namespace sherd::on_cuda
