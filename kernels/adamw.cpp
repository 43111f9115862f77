#include "kernels/adamw.h"

#include <cmath>

#include "core/cpu_stream.h"
#include "kernels/decay_segments.h"
#include "kernels/flat_check.h"
#include "kernels/master_view.h"

namespace sherd {
namespace {

/// The scalars of one step as the inner loop wants them: rounded once, from double.
struct AdamWFactors {
  float gradient_scale, keep, l2, new1, beta2, new2, inverse_root2, epsilon, step_size;
};

AdamWFactors factors(const AdamWSpec& spec, const UpdateScalars& s, double weight_decay) {
  const auto f = [](double x) { return static_cast<float>(x); };
  return {.gradient_scale = f(s.gradient_scale),
          .keep = spec.decoupled_decay ? f(1.0 - s.lr * weight_decay) : 1.0f,
          .l2 = spec.decoupled_decay ? 0.0f : f(weight_decay),
          .new1 = f(1.0 - s.beta1),
          .beta2 = f(s.beta2),
          .new2 = f(1.0 - s.beta2),
          .inverse_root2 = f(1.0 / std::sqrt(s.bias_correction2)),
          .epsilon = f(spec.epsilon),
          .step_size = f(s.lr / s.bias_correction1)};
}

template <class T>
void update_range(const MasterView<T> p, const float* gradient, float* m, float* v,
                  std::int64_t first, std::int64_t last, const AdamWFactors f) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    const float w = p.load(i);
    const float g = gradient[i] * f.gradient_scale + f.l2 * w;
    m[i] += f.new1 * (g - m[i]);
    v[i] = f.beta2 * v[i] + f.new2 * (g * g);
    const float denominator = std::sqrt(v[i]) * f.inverse_root2 + f.epsilon;
    p.store(i, f.keep * w - f.step_size * (m[i] / denominator));
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
  with_float(parameters.value.dtype(), [&]<class T>() {
    enqueue(stream, [=, p = MasterView<T>(parameters), g = gradient.as<float>(),
                     m = first_moment.as<float>(), v = second_moment.as<float>()] {
      const UpdateScalars s = *scalars;
      if (s.apply == 0) return;
      for_decay_segments(n, segments, segment_count,
                         [&](std::int64_t first, std::int64_t last, double weight_decay) {
                           update_range(p, g, m, v, first, last, factors(spec, s, weight_decay));
                         });
    });
  });
}

}  // namespace sherd
