#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/mpi.h"
#include "collectives/shared_board.h"
#include "collectives/unfinished.h"
#include "collectives/window_memory.h"

namespace sherd {

/// Which node a rank is on, and the how-manieth of that node it is.
struct NodePlace {
  int node = 0;
  int rank = 0;
};

/// Everything of MPI that only all ranks together can give back. It is kept here until `free`, so
/// that communicators and buffers can be destroyed on one rank alone, by an exception too.
class MpiContext {
 public:
  /// Collective, after MPI_Init. See MpiSession for `ranks_per_node`.
  explicit MpiContext(int ranks_per_node);

  MPI_Comm world() const { return world_; }
  const NodePlace& place() const;
  int node_size() const { return node_size_; }
  /// The places of the ranks of `comm`, in its order.
  std::vector<NodePlace> places(MPI_Comm comm) const;

  /// Takes over a new MPI communicator.
  MPI_Comm keep(MPI_Comm comm);
  MPI_Comm duplicate(MPI_Comm comm);
  /// Collective over `comm`.
  SharedBoard& make_board(MPI_Comm comm, std::int64_t staging_bytes);
  /// Collective over the node.
  WindowMemory& make_window_memory(std::chrono::nanoseconds timeout);
  MessageMemory& message_memory() { return message_memory_; }
  /// For what communicators need themselves.
  MessageMemory& own_memory() { return own_memory_; }
  /// What failed communicators no longer wait for.
  UnfinishedRequests& unfinished() { return unfinished_; }

  /// Bytes of all memories that are still held by buffers.
  std::int64_t held_bytes() const;
  void announce_failure(const char* reason) noexcept;
  /// Collective: the reverse of everything above.
  void free();

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Comm node_ = MPI_COMM_NULL;
  int node_size_ = 1;
  std::vector<NodePlace> places_;  // by world rank
  std::vector<MPI_Comm> comms_;
  std::vector<std::unique_ptr<SharedBoard>> boards_;
  std::vector<std::unique_ptr<WindowMemory>> window_memories_;
  UnfinishedRequests unfinished_;
  MessageMemory message_memory_{unfinished_};
  MessageMemory own_memory_{unfinished_};
};

}  // namespace sherd
