#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"

namespace sherd {

/// Enqueues a kernel once, on operands that it holds.
using Launch = std::function<void()>;

/// Times kernels on one stream of a device, on random operands that its cache doesn't hold.
class BenchBed {
 public:
  /// `threads` serve a CPU's stream.
  BenchBed(Device device, int threads, int repetitions);

  Stream& stream() { return *stream_; }
  /// What the machine is, for people.
  std::string description() const;
  /// What the largest operation needs of a CUDA stream's scratch.
  void set_scratch(std::int64_t bytes);

  // Operands, for the functions that `time_ms` calls.
  Tensor random(DType dtype, const Shape& shape);
  Tensor zeros(DType dtype, const Shape& shape);
  /// Undefined, for results.
  Tensor room(DType dtype, const Shape& shape);
  /// i32, uniform in [0, limit).
  Tensor indices(std::int64_t count, std::int64_t limit);
  /// The bytes of a host's value, on the device.
  template <class T>
  const T* upload(const T& value) {
    return static_cast<const T*>(upload_bytes(&value, sizeof(T)).data());
  }

  /// Milliseconds of one launch: the median of as many samples as were asked for, each of launches
  /// back to back. `make` takes operands and returns what launches on them; it's called until all
  /// operands are twice as large as the cache, and launches take turns. On GPUs the algorithms of
  /// matrix products are chosen by measurement first, as in training.
  double time_ms(const std::function<Launch()>& make);

  /// TFLOP/s of large bf16 products over a third of a second; GPUs only.
  double sustained_tflops();

 private:
  Tensor upload_bytes(const void* from, std::int64_t bytes);
  /// Milliseconds from the first launch to the end of the last.
  double run(const std::vector<Launch>& launches, int count);

  Device device_;
  int threads_;
  int repetitions_;
  std::int64_t cache_bytes_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Memory> work_memory_;
  std::unique_ptr<Memory> host_memory_;
  Buffer scratch_;
  Buffer work_;  ///< for measurements of products
  std::vector<Buffer> operands_;
  std::unique_ptr<Stream> stream_;
  std::size_t next_ = 0;  ///< whose turn it is
};

}  // namespace sherd
