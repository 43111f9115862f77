#include "core/buffer.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <utility>

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Has nothing to give.
class EmptyMemory final : public Memory {
 public:
  Device device() const override { return {DeviceKind::cuda, 1}; }

 private:
  void* take(std::int64_t bytes) override {
    throw ApiError("test", 1, fmt::format("no {} bytes", bytes), "take", __FILE__, __LINE__);
  }
  void give(void* /*data*/, std::int64_t /*bytes*/) noexcept override {}
};

bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % kAlignmentBytes == 0;
}

}  // namespace

TEST_CASE("sizes round up to the alignment") {
  CHECK(aligned(0) == 0);
  CHECK(aligned(1) == kAlignmentBytes);
  CHECK(aligned(kAlignmentBytes) == kAlignmentBytes);
  CHECK(aligned(3 * kAlignmentBytes + 1) == 4 * kAlignmentBytes);
}

TEST_CASE("memory counts what its buffers hold, and the most they ever held") {
  HostMemory memory;
  CHECK(memory.used_bytes() == 0);
  {
    const Buffer a(memory, 1000);
    const Buffer b(memory, 500);
    CHECK(memory.used_bytes() == 1500);
    CHECK(is_aligned(a.data()));
    CHECK(is_aligned(b.data()));
  }
  CHECK(memory.used_bytes() == 0);
  const Buffer c(memory, 700);
  CHECK(memory.used_bytes() == 700);
  CHECK(memory.peak_bytes() == 1500);
}

TEST_CASE("a buffer of no bytes is still on its memory's device") {
  EmptyMemory memory;
  Buffer empty(memory, 0);
  CHECK(empty.tensor(DType::f32, {0}).device() == memory.device());
  const Buffer moved = std::move(empty);
  CHECK(moved.device() == memory.device());
}

TEST_CASE("a buffer of no bytes takes no memory and still gives empty tensors") {
  HostMemory memory;
  const Buffer empty(memory, 0);
  CHECK(empty.data() == nullptr);
  CHECK(memory.peak_bytes() == 0);
  const Tensor t = empty.tensor(DType::f32, {0});
  CHECK(t.defined());
  CHECK(t.numel() == 0);
}

TEST_CASE("moving a buffer moves its bytes, and what it replaces is given back") {
  HostMemory memory;
  Buffer a(memory, 64);
  void* const data = a.data();
  Buffer b(std::move(a));
  CHECK(b.data() == data);
  CHECK(b.size_bytes() == 64);
  CHECK(a.data() == nullptr);  // NOLINT: a moved-from buffer is empty
  CHECK(a.size_bytes() == 0);  // NOLINT
  Buffer c(memory, 128);
  CHECK(memory.used_bytes() == 192);
  c = std::move(b);
  CHECK(memory.used_bytes() == 64);
  CHECK(c.data() == data);
  Buffer& same = c;
  c = std::move(same);
  CHECK(c.data() == data);
  CHECK(memory.used_bytes() == 64);
}

TEST_CASE("a tensor of a buffer must lie inside it") {
  HostMemory memory;
  const Buffer buffer(memory, 64);
  const Tensor all = buffer.tensor(DType::f32, {4, 4});
  CHECK(all.data() == buffer.data());
  const Tensor last = buffer.tensor(DType::i64, {1}, 56);
  CHECK(static_cast<std::byte*>(last.data()) == static_cast<std::byte*>(buffer.data()) + 56);
  CHECK_THROWS_AS(buffer.tensor(DType::f32, {17}), ArgumentError);
  CHECK_THROWS_WITH(buffer.tensor(DType::i64, {1}, 57),
                    ContainsSubstring("[57, 65)") && ContainsSubstring("64"));
  CHECK_THROWS_AS(buffer.tensor(DType::f32, {1}, -4), ArgumentError);
}

TEST_CASE("a buffer can't have fewer than no bytes, nor bytes that nobody has") {
  HostMemory memory;
  CHECK_THROWS_AS(Buffer(memory, -1), ArgumentError);
  EmptyMemory empty;
  CHECK_THROWS_AS(Buffer(empty, 8), ApiError);
  CHECK(empty.used_bytes() == 0);
  CHECK(empty.peak_bytes() == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these abort instead
  CHECK_THROWS_AS(Buffer(memory, std::int64_t{1} << 60), ApiError);
#endif
  CHECK(memory.used_bytes() == 0);
}
