#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/backend.h"
#include "core/buffer.h"
#include "core/stream.h"
#include "tests/kernels/test_tensor.h"
#include "tests/kernels/vector_view.h"

namespace sherd::test {

/// What `enqueue` enqueues on `stream`, to be run again.
template <class F>
std::unique_ptr<Recording> record(Stream& stream, F enqueue) {
  const std::array<Stream*, 1> streams = {&stream};
  return record_streams(streams, enqueue);
}

/// The first CUDA device with one stream, whose scratch starts as garbage.
class Gpu {
 public:
  explicit Gpu(std::int64_t scratch_bytes = std::int64_t{64} << 20)
      : memory_(make_device_memory(kDevice)),
        host_memory_(make_host_memory(kDevice)),
        stream_(make_stream(kDevice, "test")),
        scratch_(*memory_, scratch_bytes) {
    const Buffer garbage(*host_memory_, scratch_bytes);
    std::fill_n(static_cast<std::byte*>(garbage.data()), scratch_bytes, kPoison);
    copy_bytes(garbage.data(), scratch_.data(), scratch_bytes, *stream_);
    stream_->synchronize();
    lend_scratch(scratch_bytes);
  }

  /// Lets operations have the first `bytes` of the scratch; the rest has a guard at its start.
  void lend_scratch(std::int64_t bytes) {
    REQUIRE(bytes <= scratch_.size_bytes());
    stream_->set_scratch(scratch_.data(), bytes);
    lent_bytes_ = bytes;
    const std::vector<std::byte> garbage(static_cast<std::size_t>(guard_bytes()), kPoison);
    copy_bytes(garbage.data(), scratch_guard(), guard_bytes(), *stream_);
    stream_->synchronize();
  }

  Stream& stream() { return *stream_; }
  Memory& memory() { return *memory_; }

  /// Tensors of one run, which are on the device for as long.
  class Twins {
   public:
    explicit Twins(Gpu& gpu, std::int64_t shift = 0) : gpu_(gpu), shift_(shift) {}

    /// The twin of a test tensor on the device: its bytes, poison and guard included, `shift_bytes`
    /// past an aligned address (or, where they are not given, the shift of all twins in elements).
    /// Asked again, the same one.
    Tensor operator()(TestTensor& tensor, std::optional<std::int64_t> shift_bytes = {}) {
      const Tensor host = tensor;
      const auto bytes = static_cast<std::int64_t>(tensor.bytes().size());
      void* data =
          twin_of(host.data(), bytes, shift_bytes.value_or(shift_ * size_of(host.dtype())));
      return {data, host.dtype(), host.shape(), kDevice};
    }
    /// The same of a vector, of elements of a dtype or of others.
    template <class T>
    Tensor operator()(std::vector<T>& vector) {
      return {pointer(vector), dtype_of<T>(), {static_cast<std::int64_t>(vector.size())}, kDevice};
    }
    template <class T>
    T* pointer(std::vector<T>& vector) {
      constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
      const std::int64_t bytes = static_cast<std::int64_t>(vector.size()) * kBytes;
      return static_cast<T*>(twin_of(vector.data(), bytes, shift_ * kBytes));
    }

    /// Waits for the device and copies everything back into the test tensors.
    void finish() {
      for (Twin& twin : twins_) {
        copy_bytes(twin.data(), twin.staged.data(), twin.staged.size_bytes(), *gpu_.stream_);
      }
      gpu_.stream_->synchronize();
      for (Twin& twin : twins_) {
        const auto* staged = static_cast<const std::byte*>(twin.staged.data());
        std::copy_n(staged, twin.bytes, static_cast<std::byte*>(twin.host));
        check_poison(staged + twin.bytes, kGuardBytes);
      }
      gpu_.check_scratch_guard();
    }

   private:
    struct Twin {
      void* host;
      std::int64_t bytes;
      std::int64_t shift_bytes;
      Buffer device;
      Buffer staged;  ///< the bytes and a guard

      void* data() const { return static_cast<std::byte*>(device.data()) + shift_bytes; }
    };

    void* twin_of(void* host, std::int64_t bytes, std::int64_t shift_bytes) {
      for (const Twin& twin : twins_) {
        if (twin.host != host || bytes == 0) continue;
        REQUIRE(twin.shift_bytes == shift_bytes);
        return twin.data();
      }
      Twin twin{host, bytes, shift_bytes, Buffer(*gpu_.memory_, bytes + kGuardBytes + shift_bytes),
                Buffer(*gpu_.host_memory_, bytes + kGuardBytes)};
      auto* staged = static_cast<std::byte*>(twin.staged.data());
      std::copy_n(static_cast<const std::byte*>(host), bytes, staged);
      std::fill_n(staged + bytes, kGuardBytes, kPoison);
      copy_bytes(staged, twin.data(), twin.staged.size_bytes(), *gpu_.stream_);
      twins_.push_back(std::move(twin));
      return twins_.back().data();
    }

    Gpu& gpu_;
    std::int64_t shift_;
    std::vector<Twin> twins_;
  };

  /// Runs f(stream, on), `on` being the Twins, waits, and brings results back to the test tensors.
  template <class F>
  void run(F f, std::int64_t shift = 0) {
    Twins on(*this, shift);
    f(*stream_, on);
    on.finish();
  }

 private:
  static constexpr Device kDevice{DeviceKind::cuda, 0};
  static constexpr std::byte kPoison{0xA5};
  static constexpr std::int64_t kGuardBytes = 256;

  static void check_poison(const std::byte* bytes, std::int64_t count) {
    REQUIRE(std::all_of(bytes, bytes + count, [](std::byte b) { return b == kPoison; }));
  }
  std::int64_t guard_bytes() const {
    return std::min(kGuardBytes, scratch_.size_bytes() - lent_bytes_);
  }
  void* scratch_guard() const { return static_cast<std::byte*>(scratch_.data()) + lent_bytes_; }
  void check_scratch_guard() {
    std::vector<std::byte> guard(static_cast<std::size_t>(guard_bytes()));
    copy_bytes(scratch_guard(), guard.data(), guard_bytes(), *stream_);
    stream_->synchronize();
    check_poison(guard.data(), guard_bytes());
  }

  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Memory> host_memory_;
  std::unique_ptr<Stream> stream_;
  Buffer scratch_;
  std::int64_t lent_bytes_ = 0;
};

/// What stands for Twins on CPUs: the host's own tensors.
struct OnHost {
  Tensor operator()(TestTensor& tensor) const { return tensor; }
  template <class T>
  Tensor operator()(std::vector<T>& vector) const {
    return view_of(vector);
  }
  template <class T>
  T* pointer(std::vector<T>& vector) const {
    return vector.data();
  }
};

/// A case after body(case, stream, on) on a CPU and, from the same start, on a GPU, whose twins lie
/// `shift` elements past aligned addresses.
template <class Case>
struct OnBoth {
  template <class Body>
  OnBoth(Gpu& device, const Case& start, const Body& body, std::int64_t shift = 0)
      : cpu(start), gpu(start) {
    test::run([&](Stream& stream) { body(cpu, stream, OnHost{}); });
    device.run([&](Stream& stream, Gpu::Twins& on) { body(gpu, stream, on); }, shift);
  }
  /// Calls check(case) for both.
  template <class Check>
  void each(const Check& check) {
    {
      INFO("on the CPU");
      check(cpu);
    }
    INFO("on the GPU");
    check(gpu);
  }

  Case cpu, gpu;
};

}  // namespace sherd::test
