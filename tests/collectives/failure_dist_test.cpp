// Ranks that do not walk in step: each case makes its own communicator, which does not survive.

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Clock = std::chrono::steady_clock;

constexpr double kShortSeconds = 1.0;
constexpr std::chrono::seconds kSoon{20};  // on a busy machine, and far below the long timeout

std::string failure_of(CpuStream& stream) {
  try {
    stream.synchronize();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Ranks below `size - 1` run one operation, the last rank another.
struct Disagreement {
  const char* name;
  std::function<void(Communicator&, Arena&, CpuStream&)> most;
  std::function<void(Communicator&, Arena&, CpuStream&)> last;
  const char* in_message_of_most;
  const char* in_message_of_last;
};

std::vector<Shard> even_ranges(int size, std::int64_t numel) {
  std::vector<Shard> ranges(static_cast<std::size_t>(size));
  for (int r = 0; r < size; ++r) ranges[static_cast<std::size_t>(r)] = {numel * r, numel};
  return ranges;
}

void gather(Communicator& c, Arena& arena, CpuStream& stream) {
  c.all_gather(arena.take(DType::f32, 8), arena.take(DType::f32, std::int64_t{8} * c.size()),
               even_ranges(c.size(), 8), stream);
}
void gather_more(Communicator& c, Arena& arena, CpuStream& stream) {
  c.all_gather(arena.take(DType::f32, 9), arena.take(DType::f32, std::int64_t{9} * c.size()),
               even_ranges(c.size(), 9), stream);
}
/// As many elements, in other places.
void gather_elsewhere(Communicator& c, Arena& arena, CpuStream& stream) {
  auto ranges = even_ranges(c.size(), 8);
  std::swap(ranges.front(), ranges.back());
  c.all_gather(arena.take(DType::f32, 8), arena.take(DType::f32, std::int64_t{8} * c.size()),
               ranges, stream);
}
void reduce(Communicator& c, Arena& arena, CpuStream& stream) {
  c.reduce_scatter(arena.take(DType::f32, std::int64_t{8} * c.size()), arena.take(DType::f32, 8),
                   even_ranges(c.size(), 8), stream);
}
template <DType dtype, ReduceOp op>
void all_reduce(Communicator& c, Arena& arena, CpuStream& stream) {
  c.all_reduce(arena.take(dtype, 8), op, stream);
}
template <bool from_last>
void broadcast(Communicator& c, Arena& arena, CpuStream& stream) {
  c.broadcast(arena.take(DType::f32, 8), from_last ? c.size() - 1 : 0, stream);
}
void wait_for_all(Communicator& c, Arena& /*arena*/, CpuStream& stream) { c.barrier(stream); }

std::vector<Disagreement> disagreements() {
  constexpr auto kSum = all_reduce<DType::f32, ReduceOp::sum>;
  return {
      {"operation", gather, reduce, "all_gather", "reduce_scatter"},
      {"operation, the other way", reduce, gather, "reduce_scatter", "all_gather"},
      {"barrier", gather, wait_for_all, "all_gather", "barrier"},
      {"dtype", kSum, all_reduce<DType::bf16, ReduceOp::sum>, "f32", "bf16"},
      {"reduction", kSum, all_reduce<DType::f32, ReduceOp::max>, "sum of", "max of"},
      {"count", gather, gather_more, "all_gather", "elements"},
      {"places", gather, gather_elsewhere, "ranges", "ranges"},
      {"root", broadcast<false>, broadcast<true>, "root 0", "root "},
  };
}

MpiOptions options(bool shared_window, double timeout_seconds) {
  return {.shared_window = shared_window, .timeout_seconds = timeout_seconds};
}

}  // namespace

TEST_CASE("ranks that run different operations all learn of both", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  for (const Disagreement& disagreement : disagreements()) {
    CAPTURE(disagreement.name, shared_window);
    auto world = make_world(options(shared_window, 60));
    if (world->size() == 1) return;
    HostMemory host;
    Arena arena(host);
    CpuStream stream("disagreement");
    world->barrier(stream);  // operation 1: the message tells which operation it is
    const bool is_last = world->rank() == world->size() - 1;
    const auto start = Clock::now();
    (is_last ? disagreement.last : disagreement.most)(*world, arena, stream);
    const std::string message = failure_of(stream);
    CHECK(Clock::now() - start < kSoon);
    CHECK_THAT(message, ContainsSubstring("'world', operation 2"));
    CHECK_THAT(message, ContainsSubstring("rank 0 runs"));
    CHECK_THAT(message, ContainsSubstring("rank " + std::to_string(world->size() - 1) + " runs"));
    CHECK_THAT(message, ContainsSubstring(disagreement.in_message_of_most));
    CHECK_THAT(message, ContainsSubstring(disagreement.in_message_of_last));

    world->barrier(stream);
    CHECK_THAT(failure_of(stream), ContainsSubstring("can't be used after it failed"));
  }
}

TEST_CASE("a send that meets no matching recv fails on both sides", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  const bool both_send = GENERATE(true, false);
  CAPTURE(shared_window, both_send);
  auto world = make_world(options(shared_window, 60));
  if (world->size() == 1) return;
  HostMemory host;
  Arena arena(host);
  CpuStream stream("pair");
  const Tensor x = arena.take(DType::f32, 5);
  if (world->rank() == 0) world->send(x, 1, stream);
  if (world->rank() == 1 && both_send) world->send(x, 0, stream);
  if (world->rank() == 1 && !both_send) world->recv(x.flat({0, 4}), 0, stream);
  if (world->rank() > 1) return;
  const std::string message = failure_of(stream);
  CHECK_THAT(message, ContainsSubstring("send (f32, 5 elements, to 1)"));
  CHECK_THAT(message, ContainsSubstring(both_send ? "send (f32, 5 elements, to 0)"
                                                  : "recv (f32, 4 elements, from 0)"));
}

TEST_CASE("a rank that does not come is named after the timeout", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  CAPTURE(shared_window);
  meet_all_ranks();
  auto world = make_world(options(shared_window, kShortSeconds));
  if (world->size() == 1) return;
  HostMemory host;
  Arena arena(host);
  CpuStream stream("late");
  const int last = world->size() - 1;
  const auto start = Clock::now();
  if (world->rank() != last) {
    gather(*world, arena, stream);
    const std::string message = failure_of(stream);
    CHECK(Clock::now() - start < kSoon);
    const std::string missing = "rank " + std::to_string(last) + " has not arrived at all_gather";
    CHECK_THAT(message, ContainsSubstring(missing));
    CHECK_THAT(message, ContainsSubstring("operation 1"));
    CHECK_THAT(message, ContainsSubstring("within 1 s"));
  } else {
    // The one that comes too late is told what happened, and does not wait in its turn.
    std::this_thread::sleep_for(std::chrono::duration<double>(3 * kShortSeconds));
    gather(*world, arena, stream);
    CHECK_THAT(failure_of(stream), ContainsSubstring("failed: "));
  }
}

TEST_CASE("a rank that an exception ends tells the others at once", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  CAPTURE(shared_window);
  HostMemory host;
  Arena arena(host);
  CpuStream stream("survivor");
  const auto start = Clock::now();
  const auto body = [&] {
    auto world = make_world(options(shared_window, 100));
    if (world->size() == 1) return;
    if (world->rank() == 1) throw std::runtime_error("bad luck");
    gather(*world, arena, stream);
    CHECK_THAT(failure_of(stream), ContainsSubstring("rank 1 failed: an exception ended its work"));
    CHECK(Clock::now() - start < kSoon);
  };
  if (mpi_session().rank() == 1) {
    CHECK_THROWS_AS(body(), std::runtime_error);
  } else {
    body();
  }
}

TEST_CASE("a rank that an exception ends is not waited for on the host", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  CAPTURE(shared_window);
  const auto start = Clock::now();
  const auto body = [&] {
    auto world = make_world(options(shared_window, 100));
    if (world->size() == 1) return;
    if (world->rank() == 1) throw std::runtime_error("bad luck");
    CHECK_THROWS_WITH(world->split(0, world->rank(), "part"),
                      ContainsSubstring("rank 1 failed: an exception ended its work"));
    CHECK(Clock::now() - start < kSoon);
  };
  if (mpi_session().rank() == 1) {
    CHECK_THROWS_AS(body(), std::runtime_error);
  } else {
    body();
  }
}

TEST_CASE("a communicator that a rank abandons lets go of everyone at once", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  CAPTURE(shared_window);
  auto world = make_world(options(shared_window, 100));
  if (world->size() == 1) return;
  auto alone = world->split(0, world->rank(), "alone");
  HostMemory host;
  Arena arena(host);
  CpuStream stream("abandoned");
  const auto start = Clock::now();
  const int last = world->size() - 1;
  if (world->rank() == last) {
    gather(*alone, arena, stream);  // waits for ranks that never come …
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    alone->abandon("had enough");  // … until the host says that it need not
    CHECK_THAT(failure_of(stream), ContainsSubstring("after it failed: had enough"));
    world->abandon("had enough of you too");
    world->abandon("said twice");
    CHECK_THROWS_AS(world->check_peers(), CommunicationError);
  } else {
    gather(*world, arena, stream);
    const std::string expected = "rank " + std::to_string(last) + " failed: had enough of you too";
    CHECK_THAT(failure_of(stream), ContainsSubstring(expected));
    CHECK_THROWS_WITH(world->check_peers(), ContainsSubstring(expected));
    CHECK_THROWS_WITH(world->check_peers(), ContainsSubstring(expected));  // however often
  }
  gather(*world, arena, stream);
  CHECK_THAT(failure_of(stream), ContainsSubstring("can't be used after it failed"));
  CHECK(Clock::now() - start < kSoon);
}

TEST_CASE("what fails on one communicator leaves its siblings alone", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world(options(shared_window, 60));
  if (world->size() == 1) return;
  auto part = world->split(0, world->rank(), "part");
  HostMemory host;
  Arena arena(host);
  CpuStream stream("siblings");
  (world->rank() == 0 ? gather : reduce)(*part, arena, stream);
  CHECK_THAT(failure_of(stream), ContainsSubstring("'part'"));
  const Tensor x = arena.take(DType::i32, 1);
  x.as<std::int32_t>()[0] = 1;
  world->all_reduce(x, ReduceOp::sum, stream);
  stream.synchronize();
  CHECK(x.as<std::int32_t>()[0] == world->size());
}

TEST_CASE("waiting on the host ends after the timeout too", "[dist]") {
  meet_all_ranks();
  auto world = make_world(options(true, kShortSeconds));
  if (world->size() == 1) return;
  if (world->rank() == 0) return;  // and does not come to the others
  CHECK_THROWS_WITH(world->split(0, 0, "part"),
                    ContainsSubstring("splitting 'part' from 'world': rank 0 has not arrived"));
  if (mpi_session().local_size() < mpi_session().size()) return;  // memory is the node's affair
  CHECK_THROWS_WITH(Buffer(world->memory(), 100),
                    ContainsSubstring("taking 100 bytes of window memory: rank 0 has not arrived"));
}

TEST_CASE("an assertion that fails on one rank", "[.failing]") {  // a run of its own expects this
  auto world = make_world(options(true, 100));
  CpuStream stream("assertion");
  REQUIRE(world->rank() != world->size() - 1);
  world->barrier(stream);
  stream.synchronize();
}

}  // namespace sherd::test
