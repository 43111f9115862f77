#include "collectives/peer_group.h"

#include <algorithm>

#include "collectives/arguments.h"
#include "collectives/control_exchange.h"
#include "collectives/patience.h"
#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/error.h"

// Who may touch what, and when. An operation reads peers' memory, so on every GPU it stands between
// two meetings of all GPUs:
//
//   1. before it, all ranks' streams have reached it: what peers will read has been written, and
//      what this rank will overwrite is no longer in use here;
//   2. behind it, all ranks have read: what comes next on this stream may overwrite what peers
//   read.
//
// Ranks only ever write to their own memory, besides flags. A rank that gathers writes to `out`
// outside of its own range, which no peer reads. A rank that reduces writes `own`, which is its own
// range of `in` or lies outside; peers read the other ranges of `in`. So between the meetings no
// byte is written that another rank reads. Scratch is read and written by its own GPU alone.
//
// Streams order GPUs; the hosts only tell each other where their tensors are, which may differ from
// rank to rank, and find out whether they enqueue the same operation. In a captured graph that
// happened when it was captured; the meetings count on the GPU and happen in every replay.

namespace sherd {
namespace {

constexpr std::int64_t kFlagsBytes = std::int64_t{1} << 20;
constexpr int kMostGroups =
    static_cast<int>(kFlagsBytes / static_cast<std::int64_t>(sizeof(PeerFlags)));

/// Zeroes them before any peer can write there.
Buffer make_flags(PeerMemory& memory, Communicator& control) {
  const DeviceGuard guard(memory.device());
  Buffer flags(memory, kFlagsBytes);
  SHERD_CHECK(cudaMemset(flags.data(), 0, kFlagsBytes));
  SHERD_CHECK(cudaDeviceSynchronize());
  gather_values(control, 0);
  return flags;
}

}  // namespace

PeerRoot::PeerRoot(Communicator& control, Device device)
    : rank(control.rank()),
      memory(control, device),
      flags_memory(control, device),
      flags(make_flags(flags_memory, control)) {}

PeerGroup::PeerGroup(PeerRoot& root, Communicator& control, NcclCommunicator& nccl)
    : root_(root),
      nccl_(nccl),
      board_(control),
      root_ranks_(gather_values(control, root.rank)),
      postings_(root_ranks_.size()) {
  require(control.size() <= kMostPeers, "at most {} GPUs read each other's memory, got {}",
          kMostPeers, control.size());
  const std::vector<int> groups = gather_values(control, root.groups);
  const int group = *std::max_element(groups.begin(), groups.end());  // used on no rank so far
  require(group < kMostGroups, "a root has at most {} groups of peers", kMostGroups);
  root.groups = group + 1;
  flags_.rank = control.rank();
  flags_.size = control.size();
  auto place = root.flags_memory.find(root.flags.data()).value();
  place.offset_bytes += group * static_cast<std::int64_t>(sizeof(PeerFlags));
  for (std::size_t r = 0; r < root_ranks_.size(); ++r) {
    flags_.of[r] = reinterpret_cast<PeerFlags*>(root.flags_memory.address(root_ranks_[r], place));
  }
  meet_once();
}

/// Shows that flags arrive, and loads the kernel before anybody captures a graph.
void PeerGroup::meet_once() const {
  CudaStream stream(root_.memory.device(), "first meeting");
  stream.add_watch(nccl_.watch());
  const DeviceGuard guard(root_.memory.device());
  meet(stream);
  stream.synchronize();
}

bool PeerGroup::all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                           Stream& stream) {
  CudaStream& lane = cuda_stream(stream);
  const NcclWatch::Turn turn(nccl_.watch(), nccl_.member());
  const Shard mine = ranges[static_cast<std::size_t>(flags_.rank)];
  Posting posting = make_posting(Operation::all_gather, out.dtype(), ranges);
  if (mine.numel > 0) place(posting, own);
  // The own range of `out` gets a copy in any case: peers can read that where `own` can't be read.
  const bool reads_copy = posting.staged;
  if (reads_copy) place(posting, out.flat(mine));
  if (!agree_on_host(posting)) return false;

  const auto bytes_of = [&](const Shard& range) {
    return static_cast<std::size_t>(range.numel * size_of(out.dtype()));
  };
  const auto copy_own = [&] {
    if (is_in_place(own, out, mine)) return;
    SHERD_CHECK(cudaMemcpyAsync(out.flat(mine).data(), own.data(), bytes_of(mine),
                                cudaMemcpyDeviceToDevice, lane.raw()));
  };
  if (reads_copy) copy_own();
  meet(lane);
  for (int i = 1; i < flags_.size; ++i) {  // each rank starts with another one
    const int r = (flags_.rank + i) % flags_.size;
    const Shard& range = ranges[static_cast<std::size_t>(r)];
    if (range.numel == 0) continue;
    SHERD_CHECK(cudaMemcpyAsync(out.flat(range).data(), elements_of(r, {0, range.numel}),
                                bytes_of(range), cudaMemcpyDeviceToDevice, lane.raw()));
  }
  meet(lane);
  if (!reads_copy) copy_own();
  nccl_.watch().enqueued(nccl_.member(), posting, lane);
  return true;
}

/// Parts of 16 bits are pulled by the copy engines into scratch, which is planned for them, and the
/// peers are free before the sum; parts of other types are read by the kernel where they are.
bool PeerGroup::reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                               Stream& stream) {
  CudaStream& lane = cuda_stream(stream);
  const NcclWatch::Turn turn(nccl_.watch(), nccl_.member());
  const Shard mine = ranges[static_cast<std::size_t>(flags_.rank)];
  Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  if (posting.numel > 0) place(posting, in);
  const bool pulls = size_of(in.dtype()) == 2;
  const std::int64_t stride_bytes = part_stride(mine.numel) * size_of(in.dtype());
  void* scratch = nullptr;
  if (pulls) {
    scratch = lane.scratch(stride_bytes * (flags_.size - 1), "reduce_scatter between peers");
  }
  if (!agree_on_host(posting)) return false;

  RankParts parts = parts_of(in, mine);
  meet(lane);
  if (pulls) {
    pull_parts(parts, mine.numel * size_of(in.dtype()), stride_bytes,
               static_cast<std::byte*>(scratch), lane);
    meet(lane);
  }
  if (mine.numel > 0) sum_in_rank_order(parts, in.dtype(), own, lane.raw());
  if (!pulls) meet(lane);
  nccl_.watch().enqueued(nccl_.member(), posting, lane);
  return true;
}

RankParts PeerGroup::parts_of(const Tensor& in, const Shard& mine) const {
  RankParts parts;
  parts.ranks = flags_.size;
  if (mine.numel == 0) return parts;
  for (int r = 0; r < flags_.size; ++r) {
    const bool is_own = r == flags_.rank;
    parts.data[static_cast<std::size_t>(r)] = is_own ? in.flat(mine).data() : elements_of(r, mine);
  }
  return parts;
}

void PeerGroup::pull_parts(RankParts& parts, std::int64_t bytes, std::int64_t stride_bytes,
                           std::byte* scratch, CudaStream& stream) const {
  if (bytes == 0) return;
  for (int i = 1; i < flags_.size; ++i) {
    const auto r = static_cast<std::size_t>((flags_.rank + i) % flags_.size);
    std::byte* pulled = scratch + (i - 1) * stride_bytes;
    SHERD_CHECK(cudaMemcpyAsync(pulled, parts.data[r], static_cast<std::size_t>(bytes),
                                cudaMemcpyDeviceToDevice, stream.raw()));
    parts.data[r] = pulled;
  }
}

bool PeerGroup::agree_on_host(Posting posting) {
  posting.sequence = ++sequence_;
  board_.post(posting);
  bool can_read = true;
  for (int r = 0; r < flags_.size; ++r) {
    wait_for(r, posting.sequence);
    const Posting& theirs = board_.posting(r, posting.sequence);
    if (!agree(posting, theirs)) {
      nccl_.watch().give_up(fmt::format(
          "communicator '{}', operation {} between peers: rank {} runs {}, but rank {} runs {}; "
          "all ranks must enqueue the same operations in the same order",
          nccl_.member().name, posting.sequence, flags_.rank, describe(posting), r,
          describe(theirs)));
    }
    postings_[static_cast<std::size_t>(r)] = theirs;
    can_read = can_read && !theirs.staged;
  }
  return can_read;
}

void PeerGroup::wait_for(int r, std::uint64_t sequence) const {
  const double seconds = nccl_.watch().timeout_seconds();
  Patience patience(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
  while (!board_.has_posted(r, sequence)) {
    nccl_.watch().check();
    if (patience.pause()) continue;
    nccl_.watch().give_up(fmt::format(
        "communicator '{}', operation {} between peers: rank {} has not enqueued it within {:g} s",
        nccl_.member().name, sequence, r, seconds));
  }
}

void PeerGroup::place(Posting& posting, const Tensor& x) const {
  const auto found = root_.memory.find(x.data());
  posting.staged = !found;
  if (!found) return;
  posting.segment = found->segment;
  posting.offset_bytes = found->offset_bytes;
}

const std::byte* PeerGroup::elements_of(int r, const Shard& range) const {
  const Posting& posting = postings_[static_cast<std::size_t>(r)];
  const std::byte* first = root_.memory.address(root_ranks_[static_cast<std::size_t>(r)],
                                                {posting.segment, posting.offset_bytes});
  return first + range.offset * size_of(posting.dtype);
}

void PeerGroup::meet(CudaStream& stream) const {
  meet_peers(flags_, nccl_.watch().failed_word(), stream.raw());
}

}  // namespace sherd
