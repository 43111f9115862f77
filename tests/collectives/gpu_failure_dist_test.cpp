// GPUs whose ranks do not walk in step: no host waits for ever, and no kernel stays on a GPU.

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "collectives/gpu.h"
#include "collectives/nccl.h"
#include "core/backend.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Clock = std::chrono::steady_clock;

constexpr double kShortSeconds = 2.0;
constexpr std::chrono::seconds kSoon{20};  // far below the long timeout of 100 s

/// Memory, a tensor in it, and the stream of an operation that some rank leaves out.
struct Lane {
  std::unique_ptr<Memory> memory = make_device_memory(own_gpu());
  Buffer buffer{*memory, 4096};
  Tensor x = buffer.tensor(DType::f32, {1024});
  std::unique_ptr<Stream> stream = make_stream(own_gpu(), "reduce");
};

/// The first operation of a communicator, which NCCL connects the ranks for, and waits.
void connect(Communicator& communicator, Lane& lane) {
  communicator.all_reduce(lane.x, ReduceOp::sum, *lane.stream);
  lane.stream->synchronize();
}

/// Waits with `wait` until it throws, which must be soon.
template <class Wait>
std::string failure_of(Wait wait) {
  const auto start = Clock::now();
  try {
    wait();
  } catch (const CommunicationError& error) {
    CHECK(Clock::now() - start < kSoon);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a rank that stalls ends the waits of the others after the timeout", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "train",
                                            {.timeout_seconds = kShortSeconds, .share_gpus = true});
  Lane lane;
  connect(*world, lane);
  if (world->size() > 1 && world->rank() == 0) {
    const auto compute = make_stream(own_gpu(), "compute");
    const auto reduced = lane.stream->make_event();
    lane.stream->set_label({12, "backward of block.3"});
    world->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
    lane.stream->record(*reduced);
    compute->wait(*reduced);
    compute->set_label({12, "update"});

    const std::string message = failure_of([&] { compute->synchronize(); });
    CHECK_THAT(message, ContainsSubstring("nothing has ended for 2 s"));
    CHECK_THAT(message, ContainsSubstring("'train', operation 2, all_reduce (sum of f32, 1024"));
    CHECK_THAT(message, ContainsSubstring("in step 12, backward of block.3"));
    CHECK_THAT(message, ContainsSubstring("waits for the stream compute, at step 12, update"));
    CHECK(failure_of([&] { reduced->synchronize(); }) == message);
    CHECK(failure_of([&] { world->all_reduce(lane.x, ReduceOp::sum, *lane.stream); }) == message);
    CHECK(failure_of([&] { world->check_peers(); }) == message);
    lane.buffer = Buffer();  // waits until every kernel has left the GPU
  }
  meet_all_ranks();
}

TEST_CASE("a rank that an exception ends is noticed by ranks that wait for GPUs", "[gpu][dist]") {
  const auto body = [] {
    const auto control = make_world({.timeout_seconds = 100});
    const auto world = make_nccl_communicator(*control, own_gpu(), "train",
                                              {.timeout_seconds = 100, .share_gpus = true});
    if (world->size() == 1) return;
    Lane lane;
    connect(*world, lane);
    if (world->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // rank 0 waits by then
      throw std::runtime_error("bad luck");
    }
    world->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
    const std::string message = failure_of([&] { lane.stream->synchronize(); });
    CHECK_THAT(message, ContainsSubstring("rank 1 failed: an exception ended its work"));
    CHECK_THAT(message, ContainsSubstring("'train', operation 2, all_reduce"));
  };
  if (mpi_session().rank() == 1) {
    CHECK_THROWS_AS(body(), std::runtime_error);
  } else {
    body();
  }
  meet_all_ranks();
}

TEST_CASE("a rank that does not come to the first operation is noticed by the host",
          "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "train",
                                            {.timeout_seconds = kShortSeconds, .share_gpus = true});
  Lane lane;
  if (world->size() > 1 && world->rank() == 0) {
    const std::string message = failure_of([&] {
      world->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
      lane.stream->synchronize();
    });
    CHECK_THAT(message, ContainsSubstring("'train'"));
    CHECK_THAT(message, ContainsSubstring("2 s"));
  }
  meet_all_ranks();
}

TEST_CASE("a host that does not notice a failure is told in another way", "[gpu][dist]") {
  std::atomic<bool> told{false};
  const auto control = make_world();
  const auto world =
      make_nccl_communicator(*control, own_gpu(), "train",
                             {.timeout_seconds = kShortSeconds,
                              .share_gpus = true,
                              .last_resort = [&](const std::string&) { told = true; }});
  Lane lane;
  connect(*world, lane);
  if (world->size() > 1 && world->rank() == 0) {
    world->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
    const auto start = Clock::now();
    while (!told && Clock::now() - start < 2 * kSoon) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK(told);
    CHECK_THROWS_AS(lane.stream->synchronize(), CommunicationError);
  }
  meet_all_ranks();
}

TEST_CASE("a GPU that waits for its peers in vain is let go", "[gpu][dist]") {
  const auto control = make_world();
  const auto world =
      make_gpu_communicator(*control, own_gpu(), "train",
                            {.nccl = {.timeout_seconds = kShortSeconds, .share_gpus = true},
                             .transport = GpuTransport::peer});
  if (world->size() == 1) return;
  const auto other = world->split(0, world->rank(), "other");
  const std::vector<Shard> ranges(static_cast<std::size_t>(world->size()));
  const Buffer shared(world->memory(), 4096);
  const Tensor whole = shared.tensor(DType::f32, {1024});
  Lane lane;
  connect(*other, lane);
  // Rank 1 comes to the gathering only after a reduction to which nobody else comes.
  if (world->rank() == 1) other->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
  world->all_gather(whole.flat({0, 0}), whole, ranges, *lane.stream);
  const std::string message = failure_of([&] { lane.stream->synchronize(); });
  CHECK_THAT(message, ContainsSubstring("'train', operation 1, all_gather"));
  lane.buffer = Buffer();  // waits until every kernel has left the GPU
  meet_all_ranks();
}

TEST_CASE("a host that does not enqueue a peer copy is named", "[gpu][dist]") {
  const auto control = make_world();
  const auto world =
      make_gpu_communicator(*control, own_gpu(), "train",
                            {.nccl = {.timeout_seconds = kShortSeconds, .share_gpus = true},
                             .transport = GpuTransport::peer});
  const std::vector<Shard> ranges(static_cast<std::size_t>(world->size()));
  const Buffer shared(world->memory(), 4096);
  const Tensor whole = shared.tensor(DType::f32, {1024});
  Lane lane;
  if (world->size() > 1 && world->rank() == 0) {
    const std::string message = failure_of([&] {
      world->all_gather(whole.flat({0, 0}), whole, ranges, *lane.stream);
    });
    CHECK_THAT(message, ContainsSubstring("'train', operation 1 between peers: rank 1 has not"));
  }
  meet_all_ranks();
}

TEST_CASE("ranks that enqueue different peer copies learn of both", "[gpu][dist]") {
  const auto control = make_world();
  const auto world =
      make_gpu_communicator(*control, own_gpu(), "train",
                            {.nccl = {.timeout_seconds = kShortSeconds, .share_gpus = true},
                             .transport = GpuTransport::peer});
  if (world->size() == 1) return;
  const std::vector<Shard> ranges(static_cast<std::size_t>(world->size()));
  const Buffer shared(world->memory(), 4096);
  const Tensor whole = shared.tensor(DType::f32, {1024});
  Lane lane;
  const std::string message = failure_of([&] {
    if (world->rank() == 0) {
      world->all_gather(whole.flat({0, 0}), whole, ranges, *lane.stream);
    } else {
      world->reduce_scatter(whole, whole.flat({0, 0}), ranges, *lane.stream);
    }
  });
  if (world->rank() < 2) {
    CHECK_THAT(message, ContainsSubstring("runs all_gather"));
    CHECK_THAT(message, ContainsSubstring("runs reduce_scatter"));
  }
  meet_all_ranks();
}

TEST_CASE("operations that end in time are not taken for stalled", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "train",
                                            {.timeout_seconds = kShortSeconds, .share_gpus = true});
  Lane lane;
  constexpr int kRounds = 40;
  for (int i = 0; i < kRounds; ++i) {
    world->all_reduce(lane.x, ReduceOp::sum, *lane.stream);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    lane.stream->synchronize();
  }
  world->broadcast(lane.x, 0, *lane.stream);  // ends while the host does something else
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * kShortSeconds));
  lane.stream->synchronize();
}

TEST_CASE("an operation that has ended on one rank ends on all, though it leaves", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "train",
                                            {.timeout_seconds = 60, .share_gpus = true});
  const std::unique_ptr<Memory> memory = make_device_memory(own_gpu());
  constexpr std::int64_t kNumel = std::int64_t{1} << 20;
  const Buffer buffer(*memory, kNumel * size_of(DType::f32));
  const Tensor x = buffer.tensor(DType::f32, {kNumel});
  const std::unique_ptr<Stream> stream = make_stream(own_gpu(), "reduce");
  for (int round = 0; round < 8; ++round) {
    const auto part = world->split(0, world->rank(), "part");
    part->all_reduce(x, ReduceOp::max, *stream);
    CHECK_NOTHROW(stream->synchronize());
  }  // whoever is first leaves at once
}

}  // namespace sherd::test
