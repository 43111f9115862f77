#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/nccl_communicator.h"
#include "collectives/peer_board.h"
#include "collectives/peer_flags.h"
#include "collectives/peer_memory.h"
#include "collectives/posting.h"

namespace sherd {

/// What all peer groups of a root share: the memory, and flags in it for many groups.
struct PeerRoot {
  /// Collective. Throws ApiError on all ranks when they can't read each other's memory.
  PeerRoot(Communicator& control, Device device);

  int rank;
  PeerMemory memory;        ///< for tensors
  PeerMemory flags_memory;  ///< on its own, so that `memory` counts what was asked of it
  Buffer flags;             ///< a PeerFlags for each group
  int groups = 0;
};

/// Collectives of the GPUs of one host by reading each other's memory: gathers by the copy engines,
/// sums by a kernel in rank order. They stand in for those of an NCCL communicator of the same
/// ranks, whose watch follows them.
class PeerGroup {
 public:
  /// Collective over `control`, the hosts of the group's ranks. All three outlive it.
  PeerGroup(PeerRoot& root, Communicator& control, NcclCommunicator& nccl);

  /// Both as Communicator's, with arguments that were checked. False when some rank's elements are
  /// in other memory than the root's, and then nothing was enqueued on any rank.
  bool all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream);
  bool reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream);

 private:
  /// Tells the other hosts and waits for theirs: true when all elements can be read.
  bool agree_on_host(Posting posting);
  void wait_for(int r, std::uint64_t sequence) const;
  void place(Posting& posting, const Tensor& x) const;
  /// Rank r's elements [range) of the tensor of this operation.
  const std::byte* elements_of(int r, const Shard& range) const;
  void meet(CudaStream& stream) const;
  void meet_once() const;
  /// Copies peers' parts to scratch, and has `parts` say so.
  void pull_parts(RankParts& parts, std::int64_t bytes, std::int64_t stride_bytes,
                  std::byte* scratch, CudaStream& stream) const;
  RankParts parts_of(const Tensor& in, const Shard& mine) const;

  PeerRoot& root_;
  NcclCommunicator& nccl_;
  PeerBoard board_;
  std::vector<int> root_ranks_;  ///< by rank of the group
  PeerFlagTable flags_;
  std::vector<Posting> postings_;  ///< of this operation, by rank
  std::uint64_t sequence_ = 0;
};

}  // namespace sherd
