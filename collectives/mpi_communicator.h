#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/mpi.h"
#include "collectives/mpi_context.h"
#include "collectives/mpi_exchange.h"
#include "collectives/posting.h"
#include "core/cpu_stream.h"

namespace sherd {

/// What a root communicator and its splits share.
struct MpiRoot {
  MpiContext& context;
  MpiOptions options;
  WindowMemory* windows;  // null without shared windows
  Memory& memory;
};

/// What both MPI backends do alike. Every operation is one task: the ranks tell each other what
/// they are about to run, find out whether they agree, do it, and finish; a rank that fails in
/// between tells the others, and its communicator stays unusable.
class MpiCommunicator : public Communicator {
 public:
  int rank() const final { return rank_; }
  int size() const final { return size_; }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) final;
  Memory& memory() final { return root_.memory; }
  void send(const Tensor& x, int to, Stream& stream) final;
  void recv(const Tensor& x, int from, Stream& stream) final;
  void barrier(Stream& stream) final;
  void abandon(const std::string& reason) noexcept final;
  void check_peers() final;

 protected:
  /// Collective over `host_comm`, which only the host thread uses; streams use a copy of it.
  MpiCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name);

  /// Enqueues a collective: `work` runs once all ranks are known to run the same.
  template <class F>
  void launch(Stream& stream, const Posting& posting, F work) {
    enqueue(stream, [this, posting, work = std::move(work)] {
      attempt(posting, [this, &work] {
        current_.sequence = ++sequence_;
        exchange_postings();
        check_agreement();
        work();
        finish();
      });
    });
  }

  // The backend's parts of `launch`, on the stream's thread.
  /// Makes `current()` known to all ranks and waits for theirs.
  virtual void exchange_postings() = 0;
  virtual const Posting& posting(int r) const = 0;
  /// Returns when the others need nothing more from this rank.
  virtual void finish() = 0;
  /// The first failure that a rank has announced.
  virtual std::optional<PeerFailure> find_failed_peer() = 0;
  virtual void announce_failure(const char* reason) noexcept = 0;

  const Posting& current() const { return current_; }
  const std::string& name() const { return name_; }
  const MpiRoot& root() const { return root_; }
  MPI_Comm comm() const { return comm_; }
  std::chrono::nanoseconds timeout() const { return timeout_; }
  Exchange<Posting>& exchange() { return exchange_; }
  const Exchange<Posting>& exchange() const { return exchange_; }
  /// For a destructor: tells the other ranks when it is an exception that ends this communicator.
  void abandon_if_unwinding() noexcept;
  /// Waits for messages of this communicator; after a failure they are the context's.
  void wait(std::span<MPI_Request> requests);
  [[noreturn]] void throw_late(std::span<const int> missing) const;
  [[noreturn]] void throw_peer_failed(int r, const std::string& reason) const;

 private:
  template <class F>
  void attempt(const Posting& posting, F work) {
    const Turn turn(*this);
    try {
      current_ = posting;
      check_peers();
      work();
    } catch (const std::exception& error) {
      abandon(error.what());
      throw;
    }
  }

  /// Operations of one communicator are in order; two streams at once would break it.
  class Turn {
   public:
    explicit Turn(MpiCommunicator& communicator);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { busy_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& busy_;
  };

  void transfer(Operation operation, const Tensor& x, int peer, Stream& stream);
  void move_bytes(const Tensor& x);
  void require_usable() const;
  void check_agreement() const;
  [[noreturn]] void throw_mismatch(int a, const Posting& runs_a, int b,
                                   const Posting& runs_b) const;

  MpiRoot root_;
  MPI_Comm host_comm_;
  MPI_Comm comm_;
  std::string name_;
  std::chrono::nanoseconds timeout_;
  int rank_ = 0;
  int size_ = 1;
  int exceptions_;  // in flight at construction
  Exchange<Posting> exchange_;
  std::atomic_flag busy_;
  mutable std::mutex failure_mutex_;
  std::string failure_;  // why this communicator can't be used any more
  std::atomic<bool> has_failed_{false};
  // Below: of the task that runs.
  Posting current_;
  std::uint64_t sequence_ = 0;
};

/// Collective over `host_comm`, which the context keeps: shared windows where `root` has them and
/// all ranks are on one node, plain MPI elsewhere.
std::unique_ptr<Communicator> make_mpi_communicator(const MpiRoot& root, MPI_Comm host_comm,
                                                    const std::string& name);

}  // namespace sherd
