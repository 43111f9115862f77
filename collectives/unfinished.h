#pragma once

#include <mpi.h>

#include <mutex>
#include <span>
#include <vector>

#include "core/buffer.h"

namespace sherd {

/// Requests that a failed communicator no longer waits for. MPI cannot take a collective back:
/// until it ends, a late message may be written to its memory or read from it. So nothing that they
/// may use is freed before all of them have ended.
class UnfinishedRequests {
 public:
  void add(std::span<const MPI_Request> requests) noexcept;
  /// Whether some have not ended yet.
  bool any() noexcept;

 private:
  std::mutex mutex_;  // streams give up, the host looks
  std::vector<MPI_Request> requests_;
};

/// Host memory that messages are written to and read from.
class MessageMemory final : public HostMemory {
 public:
  explicit MessageMemory(UnfinishedRequests& unfinished) : unfinished_(unfinished) {}
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;
  ~MessageMemory() override;

  /// Buffers that were given back, and wait for requests to end.
  std::size_t kept_buffers() const { return kept_.size(); }

 private:
  void give(void* data, std::int64_t bytes) noexcept override;
  void free_kept() noexcept;

  UnfinishedRequests& unfinished_;
  std::vector<void*> kept_;
};

}  // namespace sherd
