#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/device.h"
#include "core/tensor.h"

namespace sherd {

/// A source of device memory that counts what it hands out; one per device and purpose. Outlives
/// the Buffers made from it. Not thread-safe: memory is taken before the step, never inside one.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  virtual Device device() const = 0;
  /// Bytes held now, and the most that were ever held at once.
  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  friend class Buffer;
  /// Returns memory aligned to kAlignment, uninitialised; throws ApiError when there is none.
  virtual void* take(std::int64_t bytes) = 0;
  virtual void give(void* data, std::int64_t bytes) noexcept = 0;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

/// Every buffer and every tensor of the plan starts at a multiple of this many bytes.
inline constexpr std::int64_t kAlignmentBytes = 256;
/// The least multiple of it that holds `bytes`.
constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

/// Page-aligned memory of this process.
class HostMemory : public Memory {
 public:
  Device device() const override { return {}; }

 protected:
  void* take(std::int64_t bytes) override;
  void give(void* data, std::int64_t bytes) noexcept override;
};

/// Owns bytes on one device; move-only. Contents start undefined.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory& memory, std::int64_t bytes);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::int64_t size_bytes() const { return bytes_; }
  void* data() const { return data_; }
  Device device() const { return memory_ == nullptr ? Device{} : memory_->device(); }
  /// A view of `shape` elements that starts `offset_bytes` into the buffer; checked to fit.
  Tensor tensor(DType dtype, Shape shape, std::int64_t offset_bytes = 0) const;

 private:
  void reset() noexcept;
  Memory* memory_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace sherd
