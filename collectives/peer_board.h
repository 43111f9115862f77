#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/communicator.h"
#include "collectives/posting.h"

namespace sherd {

/// Where the hosts of a communicator of one machine tell each other what they enqueue: a page of
/// POSIX shared memory. A rank may be one operation ahead of another, no more, since it waits for
/// the others' postings; so two places a rank are enough, used in turn.
class PeerBoard {
 public:
  /// Collective over a communicator of hosts. Throws ApiError on all ranks when they share no
  /// memory.
  explicit PeerBoard(Communicator& control);
  PeerBoard(const PeerBoard&) = delete;
  PeerBoard& operator=(const PeerBoard&) = delete;
  ~PeerBoard();

  /// Says what this rank enqueues as operation `posting.sequence`, counted from 1.
  void post(const Posting& posting);
  bool has_posted(int r, std::uint64_t sequence) const;
  /// Valid once rank r has posted it, until this rank posts the next.
  const Posting& posting(int r, std::uint64_t sequence) const;

 private:
  struct alignas(128) Place {
    std::atomic<std::uint64_t> sequence;
    Posting posting;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  Place& place(int r, std::uint64_t sequence) const;

  int rank_;
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace sherd
