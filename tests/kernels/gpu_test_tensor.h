#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "core/backend.h"
#include "core/buffer.h"
#include "core/stream.h"
#include "tests/kernels/test_tensor.h"

namespace sherd::test {

/// The first CUDA device with one stream, whose scratch starts as garbage.
class Gpu {
 public:
  explicit Gpu(std::int64_t scratch_bytes = std::int64_t{64} << 20)
      : memory_(make_device_memory(kDevice)),
        host_memory_(make_host_memory(kDevice)),
        stream_(make_stream(kDevice, "test")),
        scratch_(*memory_, scratch_bytes) {
    const Buffer garbage(*host_memory_, scratch_bytes);
    std::memset(garbage.data(), kGarbage, static_cast<std::size_t>(scratch_bytes));
    copy_bytes(garbage.data(), scratch_.data(), scratch_bytes, *stream_);
    stream_->synchronize();
    lend_scratch(scratch_bytes);
  }

  /// Lets operations have the first `bytes` of the scratch.
  void lend_scratch(std::int64_t bytes) {
    REQUIRE(bytes <= scratch_.size_bytes());
    stream_->set_scratch(scratch_.data(), bytes);
  }

  Stream& stream() { return *stream_; }
  Memory& memory() { return *memory_; }

  /// Tensors of one run, which are on the device for as long.
  class Twins {
   public:
    explicit Twins(Gpu& gpu) : gpu_(gpu) {}

    /// The twin of a test tensor on the device: its bytes, poison and guard included, `shift_bytes`
    /// past an aligned address. Asked again, the same one.
    Tensor operator()(TestTensor& tensor, std::int64_t shift_bytes = 0) {
      const Tensor host = tensor;
      for (const Twin& twin : twins_) {
        if (twin.host == host.data()) return twin.tensor(host, shift_bytes);
      }
      const auto bytes = static_cast<std::int64_t>(tensor.bytes().size());
      Twin twin{host.data(), bytes, shift_bytes, Buffer(*gpu_.memory_, bytes + shift_bytes),
                Buffer(*gpu_.host_memory_, bytes)};
      std::memcpy(twin.staged.data(), host.data(), static_cast<std::size_t>(bytes));
      copy_bytes(twin.staged.data(), twin.data(), bytes, *gpu_.stream_);
      twins_.push_back(std::move(twin));
      return twins_.back().tensor(host, shift_bytes);
    }

    /// Waits for the device and copies everything back into the test tensors.
    void finish() {
      for (Twin& twin : twins_) {
        copy_bytes(twin.data(), twin.staged.data(), twin.bytes, *gpu_.stream_);
      }
      gpu_.stream_->synchronize();
      for (Twin& twin : twins_) {
        std::memcpy(twin.host, twin.staged.data(), static_cast<std::size_t>(twin.bytes));
      }
    }

   private:
    struct Twin {
      void* host;
      std::int64_t bytes;
      std::int64_t shift_bytes;
      Buffer device;
      Buffer staged;

      void* data() const { return static_cast<std::byte*>(device.data()) + shift_bytes; }
      Tensor tensor(const Tensor& like, std::int64_t asked_shift) const {
        REQUIRE(asked_shift == shift_bytes);
        return {data(), like.dtype(), like.shape(), kDevice};
      }
    };
    Gpu& gpu_;
    std::vector<Twin> twins_;
  };

  /// Runs f(stream, on), `on` being the Twins, waits, and brings results back to the test tensors.
  template <class F>
  void run(F f) {
    Twins on(*this);
    f(*stream_, on);
    on.finish();
  }

 private:
  static constexpr Device kDevice{DeviceKind::cuda, 0};
  static constexpr int kGarbage = 0xA5;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Memory> host_memory_;
  std::unique_ptr<Stream> stream_;
  Buffer scratch_;
};

}  // namespace sherd::test
