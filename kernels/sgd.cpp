#include "kernels/sgd.h"

#include "core/cpu_stream.h"
#include "kernels/decay_segments.h"
#include "kernels/flat_check.h"
#include "kernels/master_view.h"

namespace sherd {
namespace {

/// buffer = keep * buffer + take * g, or g at first; the direction is ahead * g + lookahead *
/// buffer.
struct SgdFactors {
  bool first_step;
  float gradient_scale, decay, keep, take, ahead, lookahead, lr;
};

SgdFactors factors(const SgdSpec& spec, const UpdateScalars& s, double weight_decay) {
  const auto f = [](double x) { return static_cast<float>(x); };
  return {.first_step = s.first_step != 0,
          .gradient_scale = f(s.gradient_scale),
          .decay = f(weight_decay),
          .keep = f(spec.momentum),
          .take = f(1.0 - spec.dampening),
          .ahead = spec.nesterov ? 1.0f : 0.0f,
          .lookahead = spec.nesterov ? f(spec.momentum) : 1.0f,
          .lr = f(s.lr)};
}

template <class T>
void plain_range(const MasterView<T> p, const float* gradient, std::int64_t first,
                 std::int64_t last, const SgdFactors f) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    const float w = p.load(i);
    const float g = gradient[i] * f.gradient_scale + f.decay * w;
    p.store(i, w - f.lr * g);
  }
  p.publish(first, last);
}

template <class T>
void momentum_range(const MasterView<T> p, const float* gradient, float* buffer, std::int64_t first,
                    std::int64_t last, const SgdFactors f) {
#pragma omp simd
  for (std::int64_t i = first; i < last; ++i) {
    const float w = p.load(i);
    const float g = gradient[i] * f.gradient_scale + f.decay * w;
    buffer[i] = f.first_step ? g : f.keep * buffer[i] + f.take * g;
    p.store(i, w - f.lr * (f.ahead * g + f.lookahead * buffer[i]));
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
  with_float(parameters.value.dtype(), [&]<class T>() {
    enqueue(stream, [=, p = MasterView<T>(parameters), g = gradient.as<float>(),
                     buffer = momentum.defined() ? momentum.as<float>() : nullptr] {
      const UpdateScalars s = *scalars;
      if (s.apply == 0) return;
      for_decay_segments(n, segments, segment_count,
                         [&](std::int64_t first, std::int64_t last, double weight_decay) {
                           const SgdFactors f = factors(spec, s, weight_decay);
                           if (buffer == nullptr) {
                             plain_range(p, g, first, last, f);
                           } else {
                             momentum_range(p, g, buffer, first, last, f);
                           }
                         });
    });
  });
}

}  // namespace sherd
