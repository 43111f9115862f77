#include "core/buffer.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sherd {

void* HostMemory::take(std::int64_t bytes) {
  constexpr std::size_t kPageBytes = 4096;
  void* data = nullptr;
  const int code = posix_memalign(&data, kPageBytes, static_cast<std::size_t>(bytes));
  if (code != 0) {
    throw ApiError("POSIX", code, fmt::format("no {} bytes of host memory", bytes),
                   "posix_memalign", __builtin_FILE(), __builtin_LINE());
  }
  return data;
}

void HostMemory::give(void* data, std::int64_t /*bytes*/) noexcept { std::free(data); }

Buffer::Buffer(Memory& memory, std::int64_t bytes) : memory_(&memory), bytes_(bytes) {
  require(bytes >= 0, "a buffer can't have {} bytes", bytes);
  if (bytes == 0) return;
  data_ = memory.take(bytes);
  memory.used_bytes_ += bytes;
  memory.peak_bytes_ = std::max(memory.peak_bytes_, memory.used_bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    memory_ = std::exchange(other.memory_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Buffer::~Buffer() { reset(); }

void Buffer::reset() noexcept {
  if (data_ != nullptr) {
    memory_->give(data_, bytes_);
    memory_->used_bytes_ -= bytes_;
  }
  memory_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
}

Tensor Buffer::tensor(DType dtype, Shape shape, std::int64_t offset_bytes) const {
  const std::int64_t end = offset_bytes + shape.numel() * size_of(dtype);
  require(offset_bytes >= 0 && end <= bytes_, "bytes [{}, {}) are outside a buffer of {}",
          offset_bytes, end, bytes_);
  return {static_cast<std::byte*>(data_) + offset_bytes, dtype, shape, device()};
}

}  // namespace sherd
