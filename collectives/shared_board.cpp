#include "collectives/shared_board.h"

#include <cstring>
#include <new>

#include "collectives/mpi_check.h"

namespace sherd {

SharedBoard::SharedBoard(MPI_Comm comm, std::int64_t staging_bytes)
    : staging_bytes_(staging_bytes),
      window_(comm, static_cast<std::int64_t>(sizeof(Slot)) + staging_bytes) {
  new (window_.base(window_.rank())) Slot;
  SHERD_CHECK_MPI(MPI_Barrier(comm));
}

void SharedBoard::arrive(std::uint64_t phase) {
  slot(window_.rank()).phase.store(phase, std::memory_order_release);
}

bool SharedBoard::has_arrived(int r, std::uint64_t phase) const {
  return slot(r).phase.load(std::memory_order_acquire) >= phase;
}

void SharedBoard::announce_failure(const char* reason) noexcept {
  Slot& own = slot(window_.rank());
  int expected = kNobody;
  if (own.reason[0] != '\0') return;  // said once; others may be reading it
  std::strncpy(own.reason, reason, kReasonBytes - 1);
  slot(0).first_failed.compare_exchange_strong(expected, window_.rank(), std::memory_order_acq_rel);
}

std::optional<PeerFailure> SharedBoard::failure() const {
  const int rank = slot(0).first_failed.load(std::memory_order_acquire);
  if (rank == kNobody) return std::nullopt;
  return PeerFailure{rank, slot(rank).reason};
}

std::byte* SharedBoard::staging(int r) const { return window_.base(r) + sizeof(Slot); }

}  // namespace sherd
