// The backends of GPUs through the same suite as all others, with one rank a GPU:
// mpirun -np 2 collectives_dist_tests "[gpu]". Communicators take a second to make, so each case
// makes one.

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <optional>

#include "collectives/gpu.h"
#include "collectives/nccl.h"
#include "core/backend.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{2} << 20;

/// A stream with room for what operations add up.
class Lane {
 public:
  explicit Lane(Device device)
      : memory_(make_device_memory(device)),
        scratch_(*memory_, kScratchBytes),
        stream_(make_stream(device, "suite")) {
    stream_->set_scratch(scratch_.data(), scratch_.size_bytes());
  }
  Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<Memory> memory_;
  Buffer scratch_;
  std::unique_ptr<Stream> stream_;
};

void check_ring(Subject& subject) {
  Communicator& c = subject.communicator;
  if (c.size() == 1) return;
  Arena arena(subject.memory);
  const int next = (c.rank() + 1) % c.size();
  const int previous = (c.rank() + c.size() - 1) % c.size();
  std::uint64_t round = 0;
  for (const std::int64_t numel : {0, 1, 999, 70001}) {
    const Tensor out = arena.take(DType::f32, numel);
    const Tensor in = arena.take(DType::f32, numel);
    assign(out, random_bytes(DType::f32, numel, ++round, c.rank()));
    if (c.rank() % 2 == 0) c.send(out, next, subject.stream);
    c.recv(in, previous, subject.stream);
    if (c.rank() % 2 == 1) c.send(out, next, subject.stream);
    subject.stream.synchronize();
    REQUIRE(bytes_of(in) == random_bytes(DType::f32, numel, round, previous));
    arena.clear();
  }
}

void check_ranges(Subject subject) {
  check_all_gather(subject);
  check_reduce_scatter(subject);
}

void check_the_rest(Subject subject) {
  check_all_reduce(subject);
  check_min_max_of_nan(subject);
  check_broadcast(subject);
  check_refusals(subject);
  check_ring(subject);
}

/// All ranks, all in another order, and groups of which one may be a rank alone.
void check_world_and_parts(Communicator& world, void (*check)(Subject), bool rank_order) {
  Lane lane(world.device());
  Memory& memory = world.memory();
  {
    INFO("all ranks");
    check({world, memory, lane.stream(), rank_order});
  }
  {
    INFO("in reverse order");
    const auto part = world.split(0, -world.rank(), "reversed");
    CHECK(part->rank() == world.size() - 1 - world.rank());
    check({*part, memory, lane.stream(), rank_order});
  }
  {
    INFO("groups of one parity");
    const auto part = world.split(world.rank() % 2, world.rank(), "parity");
    CHECK(part->size() == (world.size() + 1 - world.rank() % 2) / 2);
    check({*part, memory, lane.stream(), rank_order});
  }
}

}  // namespace

TEST_CASE("NCCL does what every backend does", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "suite",
                                            {.timeout_seconds = 60, .share_gpus = true});
  check_world_and_parts(*world, check_ranges, false);
  check_world_and_parts(*world, check_the_rest, false);
}

TEST_CASE("peer copies do what every backend does", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_gpu_communicator(
      *control, own_gpu(), "suite",
      {.nccl = {.timeout_seconds = 60, .share_gpus = true}, .transport = GpuTransport::peer});
  INFO(world->description());
  CHECK(measured_transports(*world).empty());
  check_world_and_parts(*world, check_ranges, true);
  check_world_and_parts(*world, check_the_rest, false);
}

TEST_CASE("peer copies leave to NCCL what lies elsewhere on some rank", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_gpu_communicator(
      *control, own_gpu(), "suite",
      {.nccl = {.timeout_seconds = 60, .share_gpus = true}, .transport = GpuTransport::peer});
  Lane lane(own_gpu());
  const auto plain = make_device_memory(own_gpu());
  for (const bool all_elsewhere : {true, false}) {
    CAPTURE(all_elsewhere);
    const bool elsewhere = all_elsewhere || world->rank() % 2 == 1;
    for (const auto check : {check_all_gather, check_reduce_scatter}) {
      // Taking shared memory is collective: those who keep their tensors elsewhere take some too.
      std::optional<Buffer> taken_by_all;
      if (elsewhere) taken_by_all.emplace(world->memory(), kAlignmentBytes);
      Subject subject{*world, elsewhere ? *plain : world->memory(), lane.stream(), false};
      check(subject);
    }
  }
}

TEST_CASE("GPUs choose between NCCL and peer copies by what they measured", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_gpu_communicator(*control, own_gpu(), "suite",
                                           {.nccl = {.timeout_seconds = 60, .share_gpus = true}});
  const std::vector<TransportTime> times = measured_transports(*world);
  for (const TransportTime& time : times) {
    INFO((time.gather ? "gather of " : "reduction of ")
         << time.bytes << " bytes: NCCL " << time.nccl_ms << " ms, peers " << time.peer_ms
         << " ms");
    CHECK(time.nccl_ms > 0);
    CHECK(time.peer_ms > 0);
  }
  if (world->size() == 1) CHECK(times.empty());
  UNSCOPED_INFO(world->description());
  CHECK(world->memory().peak_bytes() == 0);  // what the measurement took is not the user's
  Lane lane(own_gpu());
  check_ranges({*world, world->memory(), lane.stream(), false});
}

}  // namespace sherd::test
