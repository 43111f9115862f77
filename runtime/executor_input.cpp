// How a step's numbers and micro-batches come to the device, and its result back: through host
// memory that the device copies from, filled before anything is enqueued, so that a recorded step
// finds the next one's numbers there.

#include <cstring>

#include "core/error.h"
#include "runtime/executor.h"

namespace sherd {
namespace {

void copy_in(const Tensor& from, const TensorSpec& wanted, std::byte* to) {
  require(from.dtype() == wanted.dtype && from.numel() == wanted.shape.numel(),
          "a micro-batch needs {} {}, got {} {}", name_of(wanted.dtype), to_string(wanted.shape),
          name_of(from.dtype()), to_string(from.shape()));
  std::memcpy(to, from.data(), static_cast<std::size_t>(from.size_bytes()));
}

}  // namespace

std::byte* Executor::staging(std::int64_t micro) const {
  return static_cast<std::byte*>(host_buffer_.data()) + kHostScalarBytes +
         micro * micro_batch_bytes_;
}

void Executor::stage(const StepInput& input) {
  static_assert(sizeof(HostScalars) <= kHostScalarBytes);
  HostScalars& start = *host_scalars_;
  start = {};
  start.loss.labels = input.labels;
  start.loss.loss_gradient = input.loss_gradient;
  start.loss.dropout_sequences = input.step * model_.units.size() * kDropoutSites;
  start.step.first_non_finite = kNothingFound;
  start.step.loss_scale = input.loss_scale;
  start.update = input.update;
  start.update.apply = 0;
  for (std::size_t m = 0; m < input.micro_batches.size(); ++m) {
    const MicroBatch& micro = input.micro_batches[m];
    const BatchTensors tensors = batch_tensors(model_.sample, shape_of(micro, model_.sample));
    std::byte* to = staging(static_cast<std::int64_t>(m));
    copy_in(micro.inputs, tensors.inputs, to);
    copy_in(micro.labels, tensors.labels, to + tensors.labels_offset);
    if (micro.mask.defined()) copy_in(micro.mask, tensors.mask, to + tensors.mask_offset);
    if (micro.token_types.defined()) {
      copy_in(micro.token_types, tensors.token_types, to + tensors.types_offset);
    }
  }
}

void Executor::begin() {
  HostScalars& start = *host_scalars_;
  Stream& compute = stream(Lane::compute);
  copy_bytes(&start.loss, loss_scalars_, sizeof(LossScalars), compute);
  copy_bytes(&start.step, scalars_, sizeof(StepScalars), compute);
  copy_bytes(&start.update, update_scalars_, sizeof(UpdateScalars), compute);
}

void Executor::read_scalars() {
  copy_bytes(scalars_, &host_scalars_->step, sizeof(StepScalars), stream(Lane::compute));
}

void Executor::input_micro_batch(const Node& node, const StepInput& input) {
  const auto m = static_cast<std::size_t>(node.micro);
  const bool present = m < input.micro_batches.size();
  batch_ = {};
  batch_.shape =
      present ? shape_of(input.micro_batches[m], model_.sample) : BatchShape{0, sequence_};
  const BatchTensors tensors = batch_tensors(model_.sample, batch_.shape);
  const int r = placed_.plan->inputs_region;
  batch_.inputs = region(r, tensors.inputs.dtype, tensors.inputs.shape);
  batch_.labels = region(r, DType::i32, tensors.labels.shape, tensors.labels_offset);
  if (!present) return;
  const MicroBatch& micro = input.micro_batches[m];
  batch_.first_sample = micro.first_sample;
  const auto bring = [&](const Tensor& to, std::int64_t offset) {
    copy_bytes(staging(node.micro) + offset, to.data(), to.size_bytes(), lane_of(node));
  };
  bring(batch_.inputs, 0);
  bring(batch_.labels, tensors.labels_offset);
  if (micro.mask.defined()) {
    batch_.mask = region(r, DType::i32, tensors.mask.shape, tensors.mask_offset);
    bring(batch_.mask, tensors.mask_offset);
  }
  if (micro.token_types.defined()) {
    batch_.token_types = region(r, DType::i32, tensors.token_types.shape, tensors.types_offset);
    bring(batch_.token_types, tensors.types_offset);
  }
}

}  // namespace sherd
