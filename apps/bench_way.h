#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "collectives/communicator.h"
#include "core/backend.h"

namespace sherd {

/// One way of moving bytes between ranks: a communicator with random tensors in its memory.
class BenchWay {
 public:
  /// Tensors are of `sent`, reduced into `summed`. Collective.
  BenchWay(std::string name, std::unique_ptr<Communicator> ranks, std::int64_t largest_bytes,
           DType sent, DType summed);

  const std::string& name() const { return name_; }
  /// Milliseconds of one all-gather or reduce-scatter of so many bytes in all: the mean of some
  /// back to back, from a barrier on. They use memory in turns, so that no cache holds it.
  double time_ms(bool gather, std::int64_t bytes);

 private:
  /// Where the `turn`-th of tensors this large begins in a buffer.
  static std::int64_t place(const Buffer& buffer, std::int64_t bytes, std::int64_t turn);

  std::string name_;
  std::unique_ptr<Communicator> ranks_;
  DType sent_;
  DType summed_;
  Buffer whole_;
  Buffer own_;
  std::unique_ptr<Memory> scratch_memory_;
  Buffer scratch_;
  std::unique_ptr<Stream> stream_;
  std::int64_t turn_ = 0;
};

}  // namespace sherd
