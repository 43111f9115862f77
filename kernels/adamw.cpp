#include "kernels/adamw.h"

#include "core/cpu_stream.h"
#include "kernels/adamw_step.h"
#include "kernels/cuda_kernels.h"
#include "kernels/decay_segments.h"
#include "kernels/flat_check.h"
#include "kernels/master_view.h"

namespace sherd {
namespace {

template <class T>
void update_range(const MasterView<T> p, const float* gradient, float* m, float* v,
                  std::int64_t first, std::int64_t last, const AdamWFactors f,
                  const AdamWDecay decay) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    float new_m = m[i];
    float new_v = v[i];
    p.store(i, adamw_element(f, decay, gradient[i], p.load(i), new_m, new_v));
    m[i] = new_m;
    v[i] = new_v;
  }
  p.publish(first, last);
}

}  // namespace

void adamw_update(const MasterParameters& parameters, const Tensor& gradient,
                  const Tensor& first_moment, const Tensor& second_moment,
                  const DecaySegment* segments, int segment_count, const AdamWSpec& spec,
                  const UpdateScalars* scalars, Stream& stream) {
  const std::int64_t n = gradient.numel();
  const OperandCheck check("adamw_update", stream);
  check_master_parameters(check, parameters, n);
  check_flat(check, gradient, "gradient", DType::f32, n);
  check_flat(check, first_moment, "first moment", DType::f32, n);
  check_flat(check, second_moment, "second moment", DType::f32, n);
  if (n == 0) return;
  check_step(check, segments, segment_count, scalars);
  if (!stream.device().is_cpu()) {
    return on_cuda::adamw_update(parameters, gradient, first_moment, second_moment, segments,
                                 segment_count, spec, scalars, stream);
  }
  with_float(parameters.value.dtype(), [&]<class T>() {
    enqueue(stream, [=, p = MasterView<T>(parameters), g = gradient.as<float>(),
                     m = first_moment.as<float>(), v = second_moment.as<float>()] {
      const UpdateScalars s = *scalars;
      if (s.apply == 0) return;
      const AdamWFactors f = adamw_factors(spec, s);
      for_decay_segments(n, segments, segment_count,
                         [&](std::int64_t first, std::int64_t last, double weight_decay) {
                           update_range(p, g, m, v, first, last, f,
                                        adamw_decay(spec, s, weight_decay));
                         });
    });
  });
}

}  // namespace sherd
