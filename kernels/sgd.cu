#include "kernels/sgd.h"

#include "kernels/cuda_kernels.h"
#include "kernels/sgd_step.h"
#include "kernels/shard_update.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct SgdRule {
  using Decay = float;
  using Factors = SgdFactors;

  __device__ Factors factors(const UpdateScalars& s) const { return sgd_factors(spec, s); }
  __device__ Decay decay(const UpdateScalars&, double weight_decay) const {
    return static_cast<float>(weight_decay);
  }
  template <int V>
  __device__ void move(std::int64_t i, const Factors& f, DecayCursor<SgdRule>& cursor) const {
    auto w = parameters.template load<V>(i);
    const auto g = load_pack<V>(gradient + i);
    Floats<V> buffer{};
    if (momentum != nullptr) buffer = load_pack<V>(momentum + i);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const float decay = cursor.of(i + k);
      w.v[k] = momentum == nullptr ? sgd_element(f, decay, g.v[k], w.v[k])
                                   : sgd_momentum_element(f, decay, g.v[k], w.v[k], buffer.v[k]);
    }
    parameters.store(i, w);
    if (momentum != nullptr) store_pack(momentum + i, buffer);
  }
  bool is_packed() const {
    return parameters.is_packed() && is_aligned(gradient) && is_aligned(momentum);
  }

  MasterPacks<T> parameters;
  const float* gradient;
  float* momentum;  ///< or null
  SgdSpec spec;
};

}  // namespace

void sgd_update(const MasterParameters& parameters, const Tensor& gradient, const Tensor& momentum,
                const DecaySegment* segments, int segment_count, const SgdSpec& spec,
                const UpdateScalars* scalars, Stream& stream) {
  with_device_float(parameters.value.dtype(), [&]<class T>() {
    const SgdRule<T> rule{MasterPacks<T>(parameters), gradient.as<float>(),
                          elements<float>(momentum), spec};
    update_shard("sgd_update", rule, {gradient.numel(), segments, segment_count, scalars}, stream);
  });
}

}  // namespace sherd::on_cuda
