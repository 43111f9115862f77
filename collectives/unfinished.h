#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
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
  /// Holds `thing` while there are any.
  template <class T>
  void keep(T&& thing) {
    if (!any()) return;
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::make_shared<std::decay_t<T>>(std::forward<T>(thing)));
  }

 private:
  std::mutex mutex_;  // streams give up, the host looks
  std::vector<MPI_Request> requests_;
  std::vector<std::shared_ptr<void>> kept_;
};

/// Host memory that messages are written to and read from.
class MessageMemory final : public HostMemory {
 public:
  explicit MessageMemory(UnfinishedRequests& unfinished) : unfinished_(unfinished) {}
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
