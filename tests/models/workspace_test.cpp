#include "models/workspace.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>

#include "core/buffer.h"

namespace sherd {
namespace {

TEST_CASE("A workspace measures what it later hands out") {
  const auto carve = [](Workspace& workspace) {
    workspace.take(DType::f32, {3, 5});
    const std::int64_t mark = workspace.mark();
    workspace.take(DType::bf16, {1000});
    workspace.rewind(mark);
    return workspace.take(DType::f32, {10});
  };
  Workspace measuring;
  carve(measuring);
  CHECK(measuring.peak_bytes() == kAlignmentBytes + 2048);

  HostMemory memory;
  const Buffer buffer(memory, measuring.peak_bytes());
  Workspace workspace(buffer.tensor(DType::u8, {buffer.size_bytes()}));
  const Tensor last = carve(workspace);
  CHECK(last.data() == static_cast<std::byte*>(buffer.data()) + kAlignmentBytes);
  CHECK(last.shape() == Shape{10});
  CHECK(workspace.peak_bytes() == measuring.peak_bytes());
}

TEST_CASE("A workspace that is too small says by what") {
  HostMemory memory;
  const Buffer buffer(memory, kAlignmentBytes);
  Workspace workspace(buffer.tensor(DType::u8, {buffer.size_bytes()}));
  workspace.take(DType::f32, {4});
  CHECK_THROWS_AS(workspace.take(DType::f32, {1}), ArgumentError);
}

TEST_CASE("A view without elements needs no workspace") {
  Workspace workspace(Tensor{});
  const Tensor empty = workspace.take(DType::f32, {0, 7});
  CHECK(empty.defined());
  CHECK(empty.numel() == 0);
  CHECK(workspace.peak_bytes() == 0);
}

}  // namespace
}  // namespace sherd
