#pragma once

#include <mpi.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/mpi_check.h"
#include "collectives/patience.h"

namespace sherd {

/// Tags of the messages of one MPI communicator.
enum class MessageTag : int { posting = 1, data = 2, failure = 3 };

/// Looks at `requests` until all are complete, so that a lost peer does not hold the thread
/// forever. `idle` runs between looks and may throw. False when the timeout passed first.
template <class F>
bool wait_all(std::span<MPI_Request> requests, std::chrono::nanoseconds timeout, F&& idle) {
  Patience patience(timeout);
  while (true) {
    int done = 0;
    SHERD_CHECK_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done,
                                MPI_STATUSES_IGNORE));
    if (done != 0) return true;
    idle();
    if (!patience.pause()) return false;
  }
}

/// "ranks 1, 3 have"
std::string have_ranks(std::span<const int> ranks);

/// A small value from every rank to every other, by messages between pairs, so that it is known who
/// has not arrived. Allocates nothing after construction, unless someone is missing.
template <class T>
class Exchange {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Exchange(MPI_Comm comm, std::chrono::nanoseconds timeout) : comm_(comm), timeout_(timeout) {
    SHERD_CHECK_MPI(MPI_Comm_rank(comm, &rank_));
    int size = 0;
    SHERD_CHECK_MPI(MPI_Comm_size(comm, &size));
    values_.resize(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) {
      if (r != rank_) others_.push_back(r);
    }
    requests_.reserve(2 * others_.size());
  }

  /// With all ranks. False when some did not arrive in time.
  template <class F>
  bool run(const T& mine, F&& idle) {
    return run(mine, others_, std::forward<F>(idle));
  }
  /// With these ranks only, which name this one.
  template <class F>
  bool run(const T& mine, std::span<const int> peers, F&& idle) {
    mine_ = mine;
    values_[static_cast<std::size_t>(rank_)] = mine;
    requests_.assign(2 * peers.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < peers.size(); ++i) start(peers[i], i, i + peers.size());
    try {
      if (wait_all(requests_, timeout_, std::forward<F>(idle))) return true;
    } catch (...) {
      abandon(peers);
      throw;
    }
    abandon(peers);
    return false;
  }

  /// What rank r passed, after `run`.
  const T& operator[](int r) const { return values_[static_cast<std::size_t>(r)]; }
  std::span<const T> values() const { return values_; }
  /// Who had not arrived when `run` returned false.
  std::span<const int> missing() const { return missing_; }

 private:
  void start(int peer, std::size_t receive, std::size_t send) {
    constexpr int kTag = static_cast<int>(MessageTag::posting);
    SHERD_CHECK_MPI(MPI_Irecv(&values_[static_cast<std::size_t>(peer)], sizeof(T), MPI_BYTE, peer,
                              kTag, comm_, &requests_[receive]));
    SHERD_CHECK_MPI(MPI_Isend(&mine_, sizeof(T), MPI_BYTE, peer, kTag, comm_, &requests_[send]));
  }

  /// Takes back the receives that nobody answered, so that no late message writes into freed
  /// memory.
  void abandon(std::span<const int> peers) noexcept {
    missing_.clear();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (requests_[i] != MPI_REQUEST_NULL) {
        MPI_Status status;
        int cancelled = 0;
        MPI_Cancel(&requests_[i]);
        MPI_Wait(&requests_[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled != 0) missing_.push_back(peers[i]);
      }
      MPI_Request& send = requests_[i + peers.size()];
      if (send != MPI_REQUEST_NULL) MPI_Request_free(&send);
    }
  }

  MPI_Comm comm_;
  std::chrono::nanoseconds timeout_;
  int rank_ = 0;
  T mine_{};
  std::vector<T> values_;
  std::vector<int> others_;
  std::vector<int> missing_;
  std::vector<MPI_Request> requests_;  // receives, then sends
};

/// Meets all ranks of `comm` on the host: throws CommunicationError that names `what` and who is
/// missing. `idle` is called while it waits, and may throw.
void meet(
    MPI_Comm comm, std::chrono::nanoseconds timeout, const std::string& what,
    const std::function<void()>& idle = [] {});

}  // namespace sherd
