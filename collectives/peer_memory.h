#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/communicator.h"
#include "core/buffer.h"

namespace sherd {

/// A place in memory that was taken by all ranks together, as any of them can look it up.
struct PeerPlace {
  std::int32_t segment = -1;
  std::int64_t offset_bytes = 0;
};

/// GPU memory that all ranks of one host can read and write, through CUDA's inter-process handles.
/// Taking is collective over `control`, with any number of bytes above 0 on each rank, and fails on
/// all ranks or on none; giving back is local. Memory is freed when all ranks have given it back
/// and somebody takes the next, so that nobody frees what a peer still maps.
class PeerMemory final : public Memory {
 public:
  /// `control`, a communicator of hosts, outlives it.
  PeerMemory(Communicator& control, Device device);
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  /// Unmaps and frees everything. That is not collective: ranks may end one by one, and the driver
  /// keeps memory until the last mapping is gone.
  ~PeerMemory() override;

  Device device() const override { return plain_->device(); }
  /// Nowhere when `data` was not taken from here.
  std::optional<PeerPlace> find(const void* data) const;
  /// Where rank r's bytes at `place` are in this process.
  std::byte* address(int r, const PeerPlace& place) const;
  /// Collective: frees what all ranks have given back now, not when somebody takes the next.
  void free_returned();

 private:
  struct Segment {
    std::int32_t id = 0;
    Buffer own;
    std::vector<std::byte*> bases;  ///< by rank
    bool returned = false;
  };
  void* take(std::int64_t bytes) override;
  void give(void* data, std::int64_t bytes) noexcept override;
  void map_peers(Segment& segment);
  void unmap_peers(Segment& segment) noexcept;

  Communicator& control_;
  std::unique_ptr<Memory> plain_;
  std::vector<Segment> segments_;
  std::int32_t next_id_ = 0;
};

}  // namespace sherd
