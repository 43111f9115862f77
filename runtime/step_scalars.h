#pragma once

#include <array>
#include <cstdint>

#include "core/stream.h"
#include "core/tensor.h"
#include "kernels/fixed_point.h"
#include "kernels/update.h"

namespace sherd {

// Scalars of a step that live on the device. What ranks must agree on is i64, so that one integer
// all-reduce sums it in any order to the same bits, and the host is never asked inside a step.

/// Written by the compute lane.
struct LossScalars {
  std::array<std::int64_t, kScalarLimbs> loss{};  ///< exact sum of the labels' losses
  std::int64_t non_finite = 0;                    ///< losses that were not finite
  std::int64_t labels = 0;                        ///< how many were not ignored
  std::int64_t correct = 0;                       ///< how many were guessed right, where asked
  float loss_gradient = 0.0f;                     ///< loss scale / labels of a full step
  float padding = 0.0f;
  std::uint64_t dropout_sequences = 0;  ///< that earlier steps have drawn from
};

/// Written by the reduce lane; all up to `first_non_finite` is summed over the ranks.
struct StepScalars {
  std::array<std::int64_t, kScalarLimbs> sum_of_squares{};  ///< of the gradients it answers for
  std::int64_t sum_non_finite = 0;  ///< gradients that left the range of a sum
  std::array<std::int64_t, kScalarLimbs> loss{};
  std::int64_t loss_non_finite = 0;
  std::int64_t labels = 0;
  std::int64_t correct = 0;
  std::int64_t gradient_non_finite = 0;  ///< local gradients that were not finite …
  std::int64_t first_non_finite = 0;     ///< … and the first of them, counted over all buffers
  double loss_scale = 1.0;               ///< what losses were multiplied by; the same everywhere
};
inline constexpr std::int64_t kNothingFound = INT64_MAX;

/// Views of single fields, for kernels. `block` holds one LossScalars or StepScalars.
struct LossScalarViews {
  explicit LossScalarViews(void* block, Device device);
  Tensor loss;           ///< [4] i64
  Tensor non_finite;     ///< [1] i64
  Tensor correct;        ///< [1] i64
  Tensor loss_gradient;  ///< [1] f32
};
struct StepScalarViews {
  explicit StepScalarViews(void* block, Device device);
  Tensor sum_of_squares;  ///< [4] i64
  Tensor sum_non_finite;  ///< [1] i64
  Tensor found;           ///< [2] i64: count and first
  Tensor summed;          ///< all that ranks sum, i64
};

/// Every scalar of a step as it starts, and as it ended: in host memory that the device copies from
/// and to.
struct HostScalars {
  LossScalars loss;
  StepScalars step;
  UpdateScalars update;
};

/// Moves the loss into what is summed; a rank that does not answer for its gradients (its group's
/// copy is counted elsewhere) drops its sum of squares.
void merge_loss(const LossScalars* loss, StepScalars* step, bool answers, Stream& stream);

/// What turns summed gradients into the step's: they carry loss scale / labels of a full step. The
/// same for the whole run.
struct ControlSpec {
  double labels_per_step = 1.0;
  double gradient_clipping = 0.0;
};
/// The decision: gradient_scale and apply.
void control_step(const StepScalars* step, const ControlSpec& spec, UpdateScalars* update,
                  Stream& stream);

/// The same arithmetic on the host, for reports: mean loss, gradient norm, and whether it applies.
struct StepSummary {
  double loss = 0.0;
  double gradient_norm = 0.0;
  double gradient_scale = 0.0;  ///< without clipping
  bool finite = true;
};
StepSummary summarize(const StepScalars& step, const ControlSpec& spec);

}  // namespace sherd
