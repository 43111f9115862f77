#include "kernels/sgd.h"

#include "core/cpu_stream.h"
#include "kernels/cuda_kernels.h"
#include "kernels/decay_segments.h"
#include "kernels/flat_check.h"
#include "kernels/master_view.h"
#include "kernels/sgd_step.h"

namespace sherd {
namespace {

template <class T>
void plain_range(const MasterView<T> p, const float* gradient, std::int64_t first,
                 std::int64_t last, const SgdFactors f, float decay) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    p.store(i, sgd_element(f, decay, gradient[i], p.load(i)));
  }
  p.publish(first, last);
}

template <class T>
void momentum_range(const MasterView<T> p, const float* gradient, float* buffer, std::int64_t first,
                    std::int64_t last, const SgdFactors f, float decay) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    float moved = buffer[i];
    p.store(i, sgd_momentum_element(f, decay, gradient[i], p.load(i), moved));
    buffer[i] = moved;
  }
  p.publish(first, last);
}

void check_momentum(const OperandCheck& check, const Tensor& momentum, const SgdSpec& spec,
                    std::int64_t n) {
  require(momentum.defined() == (spec.momentum != 0.0), "SGD with momentum {} {} momentum tensor",
          spec.momentum, spec.momentum != 0.0 ? "needs a" : "takes no");
  require(!spec.nesterov || (spec.momentum > 0.0 && spec.dampening == 0.0),
          "Nesterov's SGD needs a momentum above 0 and no dampening, got momentum {}, dampening {}",
          spec.momentum, spec.dampening);
  if (momentum.defined()) check_flat(check, momentum, "momentum", DType::f32, n);
}

}  // namespace

void sgd_update(const MasterParameters& parameters, const Tensor& gradient, const Tensor& momentum,
                const DecaySegment* segments, int segment_count, const SgdSpec& spec,
                const UpdateScalars* scalars, Stream& stream) {
  const std::int64_t n = gradient.numel();
  const OperandCheck check("sgd_update", stream);
  check_master_parameters(check, parameters, n);
  check_flat(check, gradient, "gradient", DType::f32, n);
  check_momentum(check, momentum, spec, n);
  if (n == 0) return;
  check_step(check, segments, segment_count, scalars);
  if (!stream.device().is_cpu()) {
    return on_cuda::sgd_update(parameters, gradient, momentum, segments, segment_count, spec,
                               scalars, stream);
  }
  with_float(parameters.value.dtype(), [&]<class T>() {
    enqueue(stream, [=, p = MasterView<T>(parameters), g = gradient.as<float>(),
                     buffer = momentum.defined() ? momentum.as<float>() : nullptr] {
      const UpdateScalars s = *scalars;
      if (s.apply == 0) return;
      const SgdFactors f = sgd_factors(spec, s);
      for_decay_segments(n, segments, segment_count,
                         [&](std::int64_t first, std::int64_t last, double weight_decay) {
                           const auto decay = static_cast<float>(weight_decay);
                           if (buffer == nullptr) {
                             plain_range(p, g, first, last, f, decay);
                           } else {
                             momentum_range(p, g, buffer, first, last, f, decay);
                           }
                         });
    });
  });
}

}  // namespace sherd
