#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/posting.h"
#include "collectives/shared_window.h"

namespace sherd {

struct PeerFailure {
  int rank = 0;
  std::string reason;
};

/// The board in shared memory of one communicator inside a node: how far each rank has come, what
/// it is doing, who has failed and why, and each rank's staging area.
class SharedBoard {
 public:
  /// Collective, and so is `free`.
  SharedBoard(MPI_Comm comm, std::int64_t staging_bytes);
  void free() { window_.free(); }

  /// Only this rank writes these; `arrive` publishes all that it wrote before.
  void post(const Posting& posting) { slot(window_.rank()).posting = posting; }
  void arrive(std::uint64_t phase);
  bool has_arrived(int r, std::uint64_t phase) const;
  /// Valid once rank r has arrived, until this rank arrives next.
  const Posting& posting(int r) const { return slot(r).posting; }

  /// Tells the others; the first rank to fail stays the one that is named.
  void announce_failure(const char* reason) noexcept;
  std::optional<PeerFailure> failure() const;

  std::byte* staging(int r) const;
  std::int64_t staging_bytes() const { return staging_bytes_; }

 private:
  static constexpr std::size_t kReasonBytes = 512;
  struct alignas(128) Slot {  // two cache lines apart: neighbours are fetched in pairs
    std::atomic<std::uint64_t> phase{0};
    std::atomic<int> first_failed{kNobody};  // used in rank 0's slot only
    Posting posting;
    char reason[kReasonBytes] = {};
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static constexpr int kNobody = -1;
  Slot& slot(int r) const { return *reinterpret_cast<Slot*>(window_.base(r)); }

  std::int64_t staging_bytes_;
  SharedWindow window_;
};

}  // namespace sherd
