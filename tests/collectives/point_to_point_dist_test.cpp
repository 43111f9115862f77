#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

constexpr DType kTypes[] = {DType::u8, DType::bf16, DType::f32, DType::i64};

/// Every rank receives from the one before and sends to the one after; even ranks send first.
void pass_around(Communicator& communicator, const Tensor& out, const Tensor& in,
                 CpuStream& stream) {
  const int size = communicator.size();
  const int next = (communicator.rank() + 1) % size;
  const int previous = (communicator.rank() + size - 1) % size;
  if (communicator.rank() % 2 == 0) communicator.send(out, next, stream);
  communicator.recv(in, previous, stream);
  if (communicator.rank() % 2 == 1) communicator.send(out, next, stream);
}

}  // namespace

TEST_CASE("send and recv move tensors around a ring", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  const std::int64_t message_bytes = GENERATE(std::int64_t{1} << 30, std::int64_t{1000});
  CAPTURE(shared_window, message_bytes);
  auto world = make_world(
      {.shared_window = shared_window, .timeout_seconds = 60, .message_bytes = message_bytes});
  if (world->size() == 1) return;
  CpuStream stream("ring");
  Arena arena(world->memory());
  const int previous = (world->rank() + world->size() - 1) % world->size();
  std::uint64_t round = 0;
  for (const std::int64_t numel : {0, 1, 999, 70001}) {
    for (const DType dtype : kTypes) {
      arena.clear();
      const Tensor out = arena.take(dtype, numel);
      const Tensor in = arena.take(dtype, numel);
      assign(out, random_bytes(dtype, numel, ++round, world->rank()));
      pass_around(*world, out, in, stream);
      stream.synchronize();
      REQUIRE(bytes_of(in) == random_bytes(dtype, numel, round, previous));
    }
  }
}

TEST_CASE("messages of a pair arrive in the order in which they were sent", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 60});
  if (world->size() == 1) return;
  constexpr int kMessages = 50;
  HostMemory host;
  CpuStream stream("pair");
  const int last = world->size() - 1;
  std::vector<Buffer> buffers;
  for (int i = 0; i < kMessages; ++i) {
    const Tensor x = buffers.emplace_back(host, 4).tensor(DType::i32, {1});
    x.as<std::int32_t>()[0] = world->rank() == 0 ? i : -1;
    if (world->rank() == 0) world->send(x, last, stream);
    if (world->rank() == last) world->recv(x, 0, stream);
  }
  world->barrier(stream);  // collectives and messages share one order
  stream.synchronize();
  for (int i = 0; i < kMessages && world->rank() == last; ++i) {
    CHECK(buffers[static_cast<std::size_t>(i)].tensor(DType::i32, {1}).as<std::int32_t>()[0] == i);
  }
}

}  // namespace sherd::test
