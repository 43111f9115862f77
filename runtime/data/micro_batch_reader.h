#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_set.h"

namespace sherd {

/// A micro-batch in host memory.
struct HostBatch {
  Tensor inputs;  ///< [B, T] i32 tokens, or [B, F] f32 features
  Tensor labels;  ///< [B, T] i32, or [B] i32 where a sample has one
  Tensor mask;    ///< [B, T] i32, 1 = real and 0 = padding; undefined where nothing is padded
};

/// Reads micro-batches into buffers of its own, sized once. Several slots let one micro-batch be
/// read while operations on another are still enqueued.
class MicroBatchReader {
 public:
  /// `samples` and `memory` must outlive the reader.
  MicroBatchReader(const SampleSet& samples, SampleOrder order, Memory& memory,
                   std::int64_t max_samples, int slots = 1);

  /// Reads the samples of the given numbers of the run, at most `max_samples`, in the given order.
  /// The views hold until the slot is read into again.
  HostBatch read(int slot, std::span<const std::int64_t> numbers);
  /// The same for numbers [first, first + count).
  HostBatch read(int slot, std::int64_t first, std::int64_t count);

 private:
  HostBatch views(int slot, std::int64_t count) const;
  void read_row(const HostBatch& batch, std::int64_t row, std::int64_t number) const;

  const SampleSet* samples_;
  SampleOrder order_;
  SampleLayout layout_;
  std::int64_t max_samples_;
  int slots_;
  Buffer inputs_;
  Buffer labels_;
  Buffer mask_;
};

}  // namespace sherd
