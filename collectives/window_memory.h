#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "collectives/shared_window.h"
#include "collectives/unfinished.h"
#include "core/buffer.h"

namespace sherd {

/// A place in a window, as any rank of the node can look it up.
struct WindowPlace {
  std::int32_t segment = -1;
  std::int64_t offset_bytes = 0;
};

/// Memory that all ranks of a node can read. Taking is collective over the node, with any number of
/// bytes above 0 on each rank, and throws CommunicationError when a rank does not come; giving back
/// is local. A window is freed when all ranks have given it back and somebody takes the next; one
/// that a rank gave back while requests were unfinished, at the end.
class WindowMemory final : public Memory {
 public:
  WindowMemory(MPI_Comm node, std::chrono::nanoseconds timeout, UnfinishedRequests& unfinished)
      : node_(node), timeout_(timeout), unfinished_(unfinished) {}

  Device device() const override { return {}; }
  /// Nowhere when `data` is not in a window of this rank.
  std::optional<WindowPlace> find(const void* data) const;
  /// Where node rank r's bytes at `place` are in this process.
  std::byte* address(int r, WindowPlace place) const;
  /// Collective: frees all windows.
  void free();

 private:
  struct Segment {
    std::int32_t id = 0;
    SharedWindow window;
    bool returned = false;
    std::byte* own() const { return window.base(window.rank()); }
  };
  void* take(std::int64_t bytes) override;
  void give(void* data, std::int64_t bytes) noexcept override;
  void free_returned();

  MPI_Comm node_;
  std::chrono::nanoseconds timeout_;
  UnfinishedRequests& unfinished_;
  mutable std::mutex mutex_;  // the host takes memory while streams look places up
  std::vector<Segment> segments_;
  std::int32_t next_id_ = 0;
};

}  // namespace sherd
