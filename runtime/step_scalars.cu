#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "runtime/step_scalars_cuda.h"

namespace sherd::on_cuda {
namespace {

/// As scalar_value, but rounded a few times; ranks that have the same limbs get the same double.
__device__ double value_of(const std::int64_t* limbs) {
  const double units[kScalarLimbs] = {0x1p-86, 0x1p-46, 0x1p-6, 0x1p34};
  double value = 0.0;
  for (int i = kScalarLimbs - 1; i >= 0; --i) value += static_cast<double>(limbs[i]) * units[i];
  return value;
}

__global__ void merge_kernel(const LossScalars* loss, StepScalars* step, bool answers) {
  step->loss = loss->loss;
  step->loss_non_finite = loss->non_finite;
  step->labels = loss->labels;
  step->correct = loss->correct;
  if (answers) return;
  step->sum_of_squares = {};
  step->sum_non_finite = 0;
}

__global__ void control_kernel(const StepScalars* step, ControlSpec spec, UpdateScalars* update) {
  const bool finite = step->sum_non_finite + step->loss_non_finite + step->gradient_non_finite == 0;
  update->apply = finite && step->labels > 0 ? 1 : 0;
  if (step->labels == 0) return;
  const double scale =
      spec.labels_per_step / (static_cast<double>(step->labels) * step->loss_scale);
  const double norm = sqrt(value_of(step->sum_of_squares.data())) * scale;
  constexpr double kClipEpsilon = 1e-6;  // clip_factor's
  const double clip = spec.gradient_clipping > 0.0
                          ? fmin(1.0, spec.gradient_clipping / (norm + kClipEpsilon))
                          : 1.0;
  update->gradient_scale = scale * clip;
}

}  // namespace

void merge_loss(const LossScalars* loss, StepScalars* step, bool answers, Stream& stream) {
  merge_kernel<<<1, 1, 0, cuda(stream)>>>(loss, step, answers);
  check_launch("merge_loss");
}

void control_step(const StepScalars* step, const ControlSpec& spec, UpdateScalars* update,
                  Stream& stream) {
  control_kernel<<<1, 1, 0, cuda(stream)>>>(step, spec, update);
  check_launch("control_step");
}

}  // namespace sherd::on_cuda
