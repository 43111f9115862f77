// Streams: what waits for what, and what may run at the same time.

#include <array>
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "core/rng.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

void pause(CpuStream& stream, std::chrono::microseconds time) {
  stream.run([time] { std::this_thread::sleep_for(time); });
}

/// Some microseconds, others on each rank.
std::chrono::microseconds random_delay(int rank, std::uint64_t index) {
  constexpr float kMost = 400.0f;
  const RngKey key{Catch::getSeed(), 7000u + static_cast<std::uint64_t>(rank)};
  return std::chrono::microseconds(static_cast<int>(kMost * uniform(key, index)));
}

void read_clock(CpuStream& stream, std::int64_t* time) {
  stream.run([time] { *time = std::chrono::steady_clock::now().time_since_epoch().count(); });
}

/// A communicator with a stream and tensors of its own, on which rounds of a collective follow each
/// other. Each round's numbers tell whether it met the same round of the other ranks.
class Lane {
 public:
  static constexpr std::int64_t kNumel = 3001;

  Lane(Communicator& parent, Memory& memory, const char* name)
      : communicator_(parent.split(0, parent.rank(), name)), arena_(memory), stream_(name) {
    const std::int64_t size = communicator_->size();
    for (std::int64_t r = 0; r < size; ++r) ranges_.push_back({kNumel * r, kNumel});
    whole_ = arena_.take(DType::f32, kNumel * size);
    own_ = arena_.take(DType::f32, kNumel);
  }

  void gather(int round) {
    pause(stream_, random_delay(rank(), std::uint64_t{2} * static_cast<unsigned>(round)));
    stream_.run([this, round] { fill(own_, value(round, rank())); });
    communicator_->all_gather(own_, whole_, ranges_, stream_);
    stream_.run([this, round] {
      for (int r = 0; r < communicator_->size(); ++r) {
        expect(whole_.flat(ranges_[static_cast<std::size_t>(r)]), value(round, r));
      }
    });
  }

  void reduce(int round) {
    pause(stream_, random_delay(rank(), std::uint64_t{2} * static_cast<unsigned>(round) + 1u));
    stream_.run([this, round] { fill(whole_, value(round, rank())); });
    communicator_->reduce_scatter(whole_, own_, ranges_, stream_);
    stream_.run([this, round] {
      float sum = 0.0f;
      for (int r = 0; r < communicator_->size(); ++r) sum += value(round, r);
      expect(own_, sum);
    });
  }

  CpuStream& stream() { return stream_; }
  int wrong_elements() const { return wrong_; }

 private:
  int rank() const { return communicator_->rank(); }
  static float value(int round, int rank) { return static_cast<float>(16 * round + rank); }
  static void fill(const Tensor& x, float v) { std::fill_n(x.as<float>(), x.numel(), v); }
  void expect(const Tensor& x, float v) {
    for (std::int64_t i = 0; i < x.numel(); ++i) wrong_ += x.as<float>()[i] != v ? 1 : 0;
  }

  std::unique_ptr<Communicator> communicator_;
  Arena arena_;
  std::vector<Shard> ranges_;
  Tensor whole_;
  Tensor own_;
  int wrong_ = 0;
  CpuStream stream_;  // last: its tasks use the rest
};

void run_two_lanes(const MpiOptions& options, bool in_windows) {
  CAPTURE(in_windows);
  auto world = make_world(options);
  HostMemory host;
  Memory& memory = in_windows ? world->memory() : host;
  Lane gathers(*world, memory, "gathers");
  Lane reductions(*world, memory, "reductions");
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    gathers.gather(round);
    reductions.reduce(round);
    // The order of the enqueueing need not be the same between communicators.
    if (world->rank() % 2 == 0) reductions.gather(round);
    gathers.reduce(round);
    if (world->rank() % 2 == 1) reductions.gather(round);
  }
  gathers.stream().synchronize();
  reductions.stream().synchronize();
  CHECK(gathers.wrong_elements() == 0);
  CHECK(reductions.wrong_elements() == 0);
}

}  // namespace

TEST_CASE("a barrier ends nowhere before all ranks have come to it", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 60});
  CpuStream stream("barrier");
  std::array<std::int64_t, 2> times{};
  pause(stream, std::chrono::milliseconds(30 * (world->size() - world->rank())));
  read_clock(stream, &times[0]);
  world->barrier(stream);
  read_clock(stream, &times[1]);
  stream.synchronize();

  const Tensor before(&times[0], DType::i64, {1});
  const Tensor after(&times[1], DType::i64, {1});
  world->all_reduce(before, ReduceOp::max, stream);
  world->all_reduce(after, ReduceOp::min, stream);
  stream.synchronize();
  CHECK(times[0] <= times[1]);  // the clock is the machine's, not the process's
}

TEST_CASE("communicators over windows run on different streams at the same time", "[dist]") {
  run_two_lanes({.shared_window = true, .timeout_seconds = 60}, GENERATE(true, false));
}

// The thread sanitizer can't see that MPI passes what one thread received on to another.
TEST_CASE("communicators over plain MPI run on different streams at the same time", "[dist]") {
  run_two_lanes({.shared_window = false, .timeout_seconds = 60}, false);
}

TEST_CASE("two streams may not run one communicator at once", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 60});
  if (world->size() == 1) return;
  CpuStream first("first");
  CpuStream second("second");
  constexpr std::chrono::milliseconds kLate{300};
  if (world->rank() > 0) std::this_thread::sleep_for(kLate);
  world->barrier(first);
  if (world->rank() == 0) {
    std::this_thread::sleep_for(kLate / 3);  // `first` waits for the others
    world->barrier(second);
    CHECK_THROWS_AS(second.synchronize(), ArgumentError);
  }
  first.synchronize();
  world->barrier(first);
  first.synchronize();
}

TEST_CASE("a split has the ranks of one color, in the order of their keys", "[dist]") {
  const bool shared_window = GENERATE(true, false);
  auto world = make_world({.shared_window = shared_window, .timeout_seconds = 60});
  const int rank = world->rank();
  const int size = world->size();
  auto part = world->split(rank % 2, -rank, "parity");
  CHECK(part->size() == (size + 1 - rank % 2) / 2);
  CHECK(part->rank() == part->size() - 1 - rank / 2);
  CHECK(part->description().find("'parity'") != std::string::npos);

  // Splits of splits, and all levels still work.
  auto alone = part->split(part->rank(), 0, "alone");
  CHECK(alone->size() == 1);
  CpuStream stream("split");
  std::array<std::int32_t, 3> sums{rank, rank, rank};
  world->all_reduce(Tensor(&sums[0], DType::i32, {1}), ReduceOp::sum, stream);
  part->all_reduce(Tensor(&sums[1], DType::i32, {1}), ReduceOp::sum, stream);
  alone->all_reduce(Tensor(&sums[2], DType::i32, {1}), ReduceOp::sum, stream);
  stream.synchronize();
  std::int32_t in_part = 0;
  for (int r = rank % 2; r < size; r += 2) in_part += r;
  CHECK(sums == std::array<std::int32_t, 3>{size * (size - 1) / 2, in_part, rank});
}

}  // namespace sherd::test
