#include "runtime/data/micro_batch_reader.h"

#include <algorithm>

#include "core/error.h"

namespace sherd {

MicroBatchReader::MicroBatchReader(const SampleSet& samples, SampleOrder order, Memory& memory,
                                   std::int64_t max_samples, int slots)
    : samples_(&samples),
      order_(order),
      layout_(samples.layout()),
      max_samples_(max_samples),
      slots_(slots) {
  require(order.samples_per_epoch() == samples.size(), "an order of {} samples for a set of {}",
          order.samples_per_epoch(), samples.size());
  require(max_samples > 0 && slots > 0, "{} slots of {} samples were asked for", slots,
          max_samples);
  const std::int64_t rows = max_samples * slots;
  inputs_ = Buffer(memory, rows * layout_.inputs * size_of(layout_.dtype));
  labels_ = Buffer(memory, rows * layout_.labels * size_of(DType::i32));
  if (layout_.padded) mask_ = Buffer(memory, rows * layout_.inputs * size_of(DType::i32));
}

HostBatch MicroBatchReader::views(int slot, std::int64_t count) const {
  require(slot >= 0 && slot < slots_, "slot {} was asked for of {}", slot, slots_);
  require(count >= 0 && count <= max_samples_, "{} samples were asked for, with room for {}", count,
          max_samples_);
  const std::int64_t rows = max_samples_ * slots_;
  const std::int64_t first = max_samples_ * slot;
  const Tensor inputs = inputs_.tensor(layout_.dtype, {rows, layout_.inputs}).rows(first, count);
  const Tensor labels = labels_.tensor(DType::i32, {rows, layout_.labels}).rows(first, count);
  Tensor mask;
  if (layout_.padded) mask = mask_.tensor(DType::i32, {rows, layout_.inputs}).rows(first, count);
  return {inputs, layout_.labels == 1 ? labels.view({count}) : labels, mask};
}

void MicroBatchReader::read_row(const HostBatch& batch, std::int64_t row,
                                std::int64_t number) const {
  samples_->read(order_.position(number), batch.inputs.flat({row * layout_.inputs, layout_.inputs}),
                 batch.labels.flat({row * layout_.labels, layout_.labels}));
  if (!layout_.padded) return;
  std::int32_t* mask = batch.mask.as<std::int32_t>() + row * layout_.inputs;
  const std::int64_t valid = samples_->valid_inputs(order_.position(number));
  std::fill_n(mask, valid, 1);
  std::fill(mask + valid, mask + layout_.inputs, 0);
}

HostBatch MicroBatchReader::read(int slot, std::span<const std::int64_t> numbers) {
  const HostBatch batch = views(slot, static_cast<std::int64_t>(numbers.size()));
  std::int64_t row = 0;
  for (const std::int64_t number : numbers) read_row(batch, row++, number);
  return batch;
}

HostBatch MicroBatchReader::read(int slot, std::int64_t first, std::int64_t count) {
  const HostBatch batch = views(slot, count);
  for (std::int64_t row = 0; row < count; ++row) read_row(batch, row, first + row);
  return batch;
}

}  // namespace sherd
