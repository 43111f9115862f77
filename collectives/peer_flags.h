#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "collectives/rank_sum.h"

namespace sherd {

/// One communicator's flags on one GPU, in memory that the peers can write to. Zero at first.
struct alignas(128) PeerFlags {
  std::array<std::uint32_t, kMostPeers> arrived;  ///< by rank: at how many meetings it has been
  std::uint32_t count;                            ///< at how many this rank has been
};

/// The same flags on all GPUs of a communicator, as one of them sees them.
struct PeerFlagTable {
  std::array<PeerFlags*, kMostPeers> of{};
  int rank = 0;
  int size = 1;
};

/// A meeting of all ranks on their GPUs: what is enqueued on `stream` behind it starts when what
/// was enqueued before it has ended on every rank. All ranks have the same meetings in the same
/// order. Counts are kept on the GPU, so it can be captured in a graph. A rank waits for ever, or
/// until the word at `failed`, in host memory, is not 0.
void meet_peers(const PeerFlagTable& flags, const std::uint32_t* failed, cudaStream_t stream);

}  // namespace sherd
