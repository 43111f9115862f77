#include "kernels/adamw.h"

#include "kernels/adamw_step.h"
#include "kernels/cuda_kernels.h"
#include "kernels/shard_update.cuh"

namespace sherd::on_cuda {
namespace {

template <class T>
struct AdamWRule {
  using Decay = AdamWDecay;
  using Factors = AdamWFactors;

  __device__ Factors factors(const UpdateScalars& s) const { return adamw_factors(spec, s); }
  __device__ Decay decay(const UpdateScalars& s, double weight_decay) const {
    return adamw_decay(spec, s, weight_decay);
  }
  template <int V>
  __device__ void move(std::int64_t i, const Factors& f, DecayCursor<AdamWRule>& cursor) const {
    auto w = parameters.template load<V>(i);
    const auto g = load_pack<V>(gradient + i);
    auto m = load_pack<V>(first_moment + i);
    auto v = load_pack<V>(second_moment + i);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      w.v[k] = adamw_element(f, cursor.of(i + k), g.v[k], w.v[k], m.v[k], v.v[k]);
    }
    parameters.store(i, w);
    store_pack(first_moment + i, m);
    store_pack(second_moment + i, v);
  }
  bool is_packed() const {
    return parameters.is_packed() && is_aligned(gradient) && is_aligned(first_moment) &&
           is_aligned(second_moment);
  }

  MasterPacks<T> parameters;
  const float* gradient;
  float *first_moment, *second_moment;
  AdamWSpec spec;
};

}  // namespace

void adamw_update(const MasterParameters& parameters, const Tensor& gradient,
                  const Tensor& first_moment, const Tensor& second_moment,
                  const DecaySegment* segments, int segment_count, const AdamWSpec& spec,
                  const UpdateScalars* scalars, Stream& stream) {
  with_device_float(parameters.value.dtype(), [&]<class T>() {
    const AdamWRule<T> rule{MasterPacks<T>(parameters), gradient.as<float>(),
                            first_moment.as<float>(), second_moment.as<float>(), spec};
    update_shard("adamw_update", rule, {gradient.numel(), segments, segment_count, scalars},
                 stream);
  });
}

}  // namespace sherd::on_cuda
