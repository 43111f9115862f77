#include "collectives/transport_times.h"

#include <algorithm>

#include "collectives/control_exchange.h"
#include "collectives/peer_group.h"
#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/cuda/timing.h"
#include "core/cuda_backend.h"

namespace sherd {
namespace {

constexpr std::int64_t kSizes[] = {std::int64_t{64} << 10, std::int64_t{512} << 10,
                                   std::int64_t{4} << 20, std::int64_t{16} << 20,
                                   std::int64_t{64} << 20};
constexpr std::int64_t kLargest = std::int64_t{64} << 20;
constexpr int kWarmUps = 3;
constexpr int kRepetitions = 7;

/// A stream and tensors of the largest size; what is in them does not matter.
class Course {
 public:
  Course(PeerMemory& memory, int ranks)
      : plain_(make_cuda_memory(memory.device())),
        whole_(memory, kLargest),
        own_(*plain_, padded(kLargest / ranks) * 2),
        scratch_(*plain_, padded(kLargest / ranks) * ranks),
        stream_(memory.device(), "start") {
    stream_.set_scratch(scratch_.data(), scratch_.size_bytes());
    // Sums of what another program left behind could be slow numbers.
    SHERD_CHECK(cudaMemsetAsync(whole_.data(), 0, kLargest, stream_.raw()));
  }

  CudaStream& stream() { return stream_; }
  Tensor whole(std::int64_t numel) const { return whole_.tensor(DType::bf16, {numel}); }
  Tensor sum(std::int64_t numel) const { return own_.tensor(DType::f32, {numel}); }

  /// Milliseconds of one `operation`.
  template <class F>
  double time(F operation) {
    for (int i = 0; i < kWarmUps; ++i) operation();
    const auto repeat = [&] {
      for (int i = 0; i < kRepetitions; ++i) operation();
    };
    return device_ms(stream_, repeat) / kRepetitions;
  }

 private:
  static std::int64_t padded(std::int64_t bytes) {
    return (bytes + kAlignmentBytes) / kAlignmentBytes * kAlignmentBytes;
  }
  std::unique_ptr<Memory> plain_;
  Buffer whole_;
  Buffer own_;
  Buffer scratch_;
  CudaStream stream_;
};

double slowest(Communicator& control, double ms) {
  const std::vector<double> all = gather_values(control, ms);
  return *std::max_element(all.begin(), all.end());
}

std::vector<Shard> cut_evenly(std::int64_t bytes, int ranks) {
  const std::int64_t share = bytes / size_of(DType::bf16) / ranks;
  std::vector<Shard> ranges;
  for (std::int64_t r = 0; r < ranks; ++r) ranges.push_back({r * share, share});
  return ranges;
}

TransportTime time_gather(Communicator& control, NcclCommunicator& nccl, PeerGroup& group,
                          Course& course, std::int64_t bytes) {
  const std::vector<Shard> ranges = cut_evenly(bytes, control.size());
  const Tensor whole = course.whole(ranges.back().end());
  const Tensor own = whole.flat(ranges[static_cast<std::size_t>(control.rank())]);
  CudaStream& stream = course.stream();
  const double by_nccl = course.time([&] { nccl.all_gather(own, whole, ranges, stream); });
  const double by_peers = course.time([&] { group.all_gather(own, whole, ranges, stream); });
  return {true, bytes, slowest(control, by_nccl), slowest(control, by_peers)};
}

TransportTime time_reduction(Communicator& control, NcclCommunicator& nccl, PeerGroup& group,
                             Course& course, std::int64_t bytes) {
  const std::vector<Shard> ranges = cut_evenly(bytes, control.size());
  const Tensor whole = course.whole(ranges.back().end());
  const Tensor sum = course.sum(ranges[0].numel);
  CudaStream& stream = course.stream();
  const double by_nccl = course.time([&] { nccl.reduce_scatter(whole, sum, ranges, stream); });
  const double by_peers = course.time([&] { group.reduce_scatter(whole, sum, ranges, stream); });
  return {false, bytes, slowest(control, by_nccl), slowest(control, by_peers)};
}

}  // namespace

std::vector<TransportTime> time_transports(Communicator& control, NcclCommunicator& nccl) {
  const DeviceGuard guard(nccl.device());
  // Memory of its own, so that the communicator's counts what its users take.
  PeerRoot root(control, nccl.device());
  std::vector<TransportTime> times;
  {
    PeerGroup group(root, control, nccl);
    Course course(root.memory, control.size());
    for (const std::int64_t bytes : kSizes) {
      times.push_back(time_gather(control, nccl, group, course, bytes));
      times.push_back(time_reduction(control, nccl, group, course, bytes));
    }
  }
  root.memory.free_returned();
  root.flags = Buffer();
  root.flags_memory.free_returned();
  return times;
}

double peer_copy_gb_per_s(Communicator& control, Device device, std::int64_t bytes) {
  constexpr int kCopies = 20;
  const DeviceGuard guard(device);
  PeerMemory memory(control, device);
  const auto plain = make_cuda_memory(device);
  const Buffer from(memory, bytes);
  const Buffer to(*plain, bytes);
  const int next = (control.rank() + 1) % control.size();
  const std::byte* theirs = memory.address(next, memory.find(from.data()).value());
  CudaStream stream(device, "peer-copy");
  const auto copy = [&](int count) {
    for (int i = 0; i < count; ++i) copy_bytes_cuda(theirs, to.data(), bytes, stream);
  };
  copy(kWarmUps);
  stream.synchronize();
  gather_values(control, 0);  // all start together
  const double ms = device_ms(stream, [&] { copy(kCopies); });
  return static_cast<double>(bytes) * kCopies / slowest(control, ms) / 1e6;
}

}  // namespace sherd
