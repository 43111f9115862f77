#include "runtime/step_scalars.h"

#include <cmath>
#include <cstddef>

#include "core/cpu_stream.h"
#include "optim/clipping.h"
#include "runtime/step_scalars_cuda.h"

namespace sherd {
namespace {

Tensor field(void* block, std::size_t offset, DType dtype, std::int64_t count, Device device) {
  return {static_cast<std::byte*>(block) + offset, dtype, {count}, device};
}

constexpr std::int64_t kSummedWords = offsetof(StepScalars, first_non_finite) / 8;

}  // namespace

LossScalarViews::LossScalarViews(void* block, Device device)
    : loss(field(block, offsetof(LossScalars, loss), DType::i64, kScalarLimbs, device)),
      non_finite(field(block, offsetof(LossScalars, non_finite), DType::i64, 1, device)),
      correct(field(block, offsetof(LossScalars, correct), DType::i64, 1, device)),
      loss_gradient(field(block, offsetof(LossScalars, loss_gradient), DType::f32, 1, device)) {}

StepScalarViews::StepScalarViews(void* block, Device device)
    : sum_of_squares(
          field(block, offsetof(StepScalars, sum_of_squares), DType::i64, kScalarLimbs, device)),
      sum_non_finite(field(block, offsetof(StepScalars, sum_non_finite), DType::i64, 1, device)),
      found(field(block, offsetof(StepScalars, gradient_non_finite), DType::i64, 2, device)),
      summed(field(block, 0, DType::i64, kSummedWords, device)) {}

void merge_loss(const LossScalars* loss, StepScalars* step, bool answers, Stream& stream) {
  if (!stream.device().is_cpu()) return on_cuda::merge_loss(loss, step, answers, stream);
  enqueue(stream, [=] {
    step->loss = loss->loss;
    step->loss_non_finite = loss->non_finite;
    step->labels = loss->labels;
    step->correct = loss->correct;
    if (!answers) {
      step->sum_of_squares = {};
      step->sum_non_finite = 0;
    }
  });
}

StepSummary summarize(const StepScalars& step, const ControlSpec& spec) {
  StepSummary summary;
  summary.finite = step.sum_non_finite + step.loss_non_finite + step.gradient_non_finite == 0;
  if (step.labels == 0) return summary;
  const auto labels = static_cast<double>(step.labels);
  summary.loss = scalar_value(step.loss) / labels;
  summary.gradient_scale = spec.labels_per_step / (labels * step.loss_scale);
  summary.gradient_norm = std::sqrt(scalar_value(step.sum_of_squares)) * summary.gradient_scale;
  return summary;
}

void control_step(const StepScalars* step, const ControlSpec& spec, UpdateScalars* update,
                  Stream& stream) {
  if (!stream.device().is_cpu()) return on_cuda::control_step(step, spec, update, stream);
  enqueue(stream, [=] {
    const StepSummary summary = summarize(*step, spec);
    const double clip = clip_factor(summary.gradient_norm, spec.gradient_clipping);
    update->gradient_scale = static_cast<float>(summary.gradient_scale * clip);
    update->apply = summary.finite && step->labels > 0 ? 1 : 0;
  });
}

}  // namespace sherd
