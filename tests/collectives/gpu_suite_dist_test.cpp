// The backends of GPUs through the same suite as all others, with one rank a GPU:
// mpirun -np 2 collectives_dist_tests "[gpu]". Communicators take a second to make, so each case
// makes one.

#include <catch2/catch_test_macros.hpp>

#include "collectives/nccl.h"
#include "core/backend.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

constexpr std::int64_t kScratchBytes = std::int64_t{2} << 20;

Device own_gpu() { return {DeviceKind::cuda, mpi_session().local_rank()}; }

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

void check_everything(Subject subject) {
  check_all_gather(subject);
  check_reduce_scatter(subject);
  check_all_reduce(subject);
  check_min_max_of_nan(subject);
  check_broadcast(subject);
  check_refusals(subject);
  check_ring(subject);
}

}  // namespace

TEST_CASE("NCCL does what every backend does", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_nccl_communicator(*control, own_gpu(), "suite", {.timeout_seconds = 60});
  Lane lane(own_gpu());
  {
    INFO("all ranks");
    check_everything({*world, world->memory(), lane.stream(), false});
  }
  {
    INFO("in reverse order");
    const auto part = world->split(0, -world->rank(), "reversed");
    CHECK(part->rank() == world->size() - 1 - world->rank());
    check_everything({*part, world->memory(), lane.stream(), false});
  }
  {
    INFO("groups of one parity");
    const auto part = world->split(world->rank() % 2, world->rank(), "parity");
    CHECK(part->size() == (world->size() + 1 - world->rank() % 2) / 2);
    check_everything({*part, world->memory(), lane.stream(), false});
  }
}

}  // namespace sherd::test
