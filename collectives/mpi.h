#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace sherd {

class MpiContext;

/// How the communicators of one root move bytes; the same on all ranks.
struct MpiOptions {
  bool shared_window = true;     ///< false: plain MPI inside a node too, as between nodes
  double timeout_seconds = 300;  ///< a rank that is later than this is lost
  std::int64_t staging_bytes = std::int64_t{2} << 20;  ///< a rank's room for tensors elsewhere
                                                       ///< than in `Communicator::memory`
  std::int64_t message_bytes = std::int64_t{1} << 30;  ///< the longest message of plain MPI
};

/// MPI, from its start to its end; one per process, made and shut down by the same thread. Outlives
/// its communicators and their buffers.
class MpiSession {
 public:
  /// Collective. Throws ArgumentError on all ranks when the launcher's environment and MPI do not
  /// agree on the number of ranks. `ranks_per_node` > 0 takes so many consecutive ranks for a node,
  /// so that the path between nodes can be tried on one machine; 0 asks MPI.
  explicit MpiSession(int ranks_per_node = 0);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// Shuts down, unless an exception is in flight: then it tells the node's other ranks that this
  /// one has failed and leaves MPI as it is, since only `abort` can end it alone.
  ~MpiSession();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Among the ranks of this node.
  int local_rank() const;
  int local_size() const;
  /// By rank.
  const std::vector<std::string>& hostnames() const { return hostnames_; }

  /// Collective: a new root communicator of all ranks.
  std::unique_ptr<Communicator> world(const MpiOptions& options = {});

  /// Collective, once all communicators and their buffers are gone: frees everything and ends MPI.
  void shutdown();
  /// How long a shutdown waits for a late rank, which may have a model to write: as long as the
  /// most patient of the worlds, and a minute at least.
  std::chrono::nanoseconds patience() const { return patience_; }
  /// Ends all ranks now; the launcher returns `code`.
  [[noreturn]] void abort(int code);

 private:
  void start(int ranks_per_node);
  int exceptions_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::string> hostnames_;
  std::chrono::nanoseconds patience_ = std::chrono::minutes(1);
  std::unique_ptr<MpiContext> context_;
};

}  // namespace sherd
