// Peer copies: what waits for what, on GPUs that are busy for different times.

#include <cuda_runtime_api.h>

#include <array>
#include <catch2/catch_get_random_seed.hpp>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "collectives/control_exchange.h"
#include "collectives/gpu.h"
#include "core/backend.h"
#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/rng.h"
#include "tests/collectives/suite.h"
#include "tests/dist.h"

namespace sherd::test {
namespace {

std::unique_ptr<Communicator> make_peers(Communicator& control) {
  return make_gpu_communicator(
      control, own_gpu(), "peers",
      {.nccl = {.timeout_seconds = 60, .share_gpus = true}, .transport = GpuTransport::peer});
}

/// A communicator with a stream and tensors of its own. Each round's numbers tell whether it met
/// the same round of the other ranks, and nothing waits for the host between rounds.
class Lane {
 public:
  static constexpr std::int64_t kNumel = 30011;

  Lane(Communicator& world, const char* name, int rounds)
      : communicator_(world.split(0, world.rank(), name)),
        host_memory_(make_host_memory(world.device())),
        host_(*host_memory_, rounds * round_bytes(world.size())),
        whole_(world.memory(), kNumel * world.size() * size_of(DType::f32)),
        own_(world.memory(), kNumel * size_of(DType::f32)),
        delay_(world.memory(), kDelayBytes),
        stream_(make_stream(world.device(), name)) {
    for (std::int64_t r = 0; r < world.size(); ++r) ranges_.push_back({kNumel * r, kNumel});
  }

  /// Sends, overwrites what was sent as soon as it may, and keeps what came for `check`.
  void run(int round) {
    const int size = communicator_->size();
    const Tensor values = host(round, 0, 1);
    const Tensor result = host(round, 1, size);
    const Tensor sum = host(round, 1 + size, 1);
    std::fill_n(values.as<float>(), kNumel, value(round, communicator_->rank()));
    const Tensor whole = whole_.tensor(DType::f32, {kNumel * size});
    const Tensor own = own_.tensor(DType::f32, {kNumel});
    const auto copy = [&](const Tensor& from, const Tensor& to) {
      copy_bytes(from.data(), to.data(), from.size_bytes(), *stream_);
    };
    stall(2 * round);
    copy(values, own);
    communicator_->all_gather(own, whole, ranges_, *stream_);
    copy(whole, result);
    stall(2 * round + 1);
    communicator_->reduce_scatter(whole, own, ranges_, *stream_);
    copy(own, sum);
  }

  void check(int rounds) {
    stream_->synchronize();
    int wrong = 0;
    const int size = communicator_->size();
    for (int round = 0; round < rounds; ++round) {
      const float* result = host(round, 1, size).as<float>();
      const float* sum = host(round, 1 + size, 1).as<float>();
      const float expected = value(round, communicator_->rank()) * static_cast<float>(size);
      for (std::int64_t i = 0; i < kNumel * size; ++i) {
        wrong += result[i] != value(round, static_cast<int>(i / kNumel)) ? 1 : 0;
      }
      for (std::int64_t i = 0; i < kNumel; ++i) wrong += sum[i] != expected ? 1 : 0;
    }
    CHECK(wrong == 0);
  }

 private:
  static constexpr std::int64_t kDelayBytes = std::int64_t{64} << 20;

  static std::int64_t round_bytes(int size) { return kNumel * (size + 2) * size_of(DType::f32); }
  static float value(int round, int rank) { return static_cast<float>(16 * round + rank); }
  Tensor host(int round, std::int64_t first, std::int64_t count) const {
    const std::int64_t offset = round * round_bytes(communicator_->size());
    return host_.tensor(DType::f32, {count * kNumel},
                        offset + first * kNumel * size_of(DType::f32));
  }
  /// Keeps the stream busy for some microseconds, others on each rank.
  void stall(int index) {
    constexpr float kMost = 6.0f;
    const RngKey key{Catch::getSeed(), 9000u + static_cast<std::uint64_t>(communicator_->rank())};
    const int copies = static_cast<int>(kMost * uniform(key, static_cast<std::uint64_t>(index)));
    auto* data = static_cast<std::byte*>(delay_.data());
    for (int i = 0; i < copies; ++i) {
      copy_bytes(data, data + kDelayBytes / 2, kDelayBytes / 2, *stream_);
    }
  }

  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Memory> host_memory_;
  Buffer host_;  ///< of each round: own values, what was gathered, the sum
  Buffer whole_;
  Buffer own_;
  Buffer delay_;
  std::vector<Shard> ranges_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace

TEST_CASE("peer copies neither start early nor end late on two busy streams", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_peers(*control);
  constexpr int kRounds = 60;
  Lane first(*world, "first", kRounds);
  Lane second(*world, "second", kRounds);
  for (int round = 0; round < kRounds; ++round) {
    first.run(round);
    second.run(round);
  }
  first.check(kRounds);
  second.check(kRounds);
}

TEST_CASE("a ring of copies has a rate, the same on every rank", "[gpu][dist]") {
  const auto control = make_world();
  constexpr std::int64_t kBytes = std::int64_t{16} << 20;
  const double own = peer_copy_gb_per_s(*control, own_gpu(), kBytes);
  CHECK(own > 1.0);
  for (const double theirs : gather_values(*control, own)) CHECK(theirs == own);
}

TEST_CASE("peer copies in a graph meet in every replay", "[gpu][dist]") {
  const auto control = make_world();
  const auto world = make_peers(*control);
  constexpr std::int64_t kNumel = 5003;
  const std::int64_t size = world->size();
  std::vector<Shard> ranges;
  for (std::int64_t r = 0; r < size; ++r) ranges.push_back({kNumel * r, kNumel});
  const Buffer buffer(world->memory(), (2 * size + 1) * kNumel * 4 + kAlignmentBytes);
  const Tensor own = buffer.tensor(DType::f32, {kNumel});
  const Tensor whole = buffer.tensor(DType::f32, {size * kNumel}, kNumel * 4);
  const auto stream = make_stream(own_gpu(), "graph");
  const std::array<Stream*, 1> streams = {stream.get()};
  const auto recording = record_streams(streams, [&] {
    world->all_gather(own, whole, ranges, *stream);
    world->reduce_scatter(whole, own, ranges, *stream);
  });
  // Gathered, then added: every element grows by the number of ranks.
  Bytes expected = random_bytes(DType::f32, kNumel, 1, world->rank());
  assign(own, expected);
  constexpr int kReplays = 20;
  for (int i = 0; i < kReplays; ++i) recording->replay();
  stream->synchronize();
  for (int i = 0; i < kReplays; ++i) {
    expected = reduced(std::vector<Bytes>(static_cast<std::size_t>(size), expected), DType::f32,
                       DType::f32, ReduceOp::sum);
  }
  CHECK(bytes_of(own) == expected);
}

}  // namespace sherd::test
