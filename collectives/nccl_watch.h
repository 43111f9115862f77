#pragma once

#include <cuda.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "collectives/communicator.h"
#include "collectives/nccl.h"
#include "collectives/posting.h"
#include "core/buffer.h"
#include "core/cuda/cuda_stream.h"
#include "core/stream_watch.h"

namespace sherd {

/// Looks after all communicators of one NCCL root, on a thread of its own, so that no rank waits
/// for ever: an operation whose peer has stalled, died or runs something else never ends by itself.
/// It asks NCCL and the control communicator for errors, and takes the root for stalled when
/// operations are pending, or a host thread waits, and nothing has ended for the time of the
/// timeout. Then it tells the other ranks and aborts every communicator of the root, so that their
/// kernels leave the GPU, and whoever waits for a stream under watch throws CommunicationError.
///
/// As long as all is well the thread makes no CUDA calls, since those may stand behind a host
/// thread that is held up in one. Instead, each operation is followed by a write of its number to
/// host memory.
class NcclWatch final : public StreamWatch {
 public:
  /// One communicator under watch.
  struct Member {
    ncclComm_t comm = nullptr;  ///< null once it is aborted
    std::string name;
    std::uint32_t* done = nullptr;  ///< the number of the last operation that has ended
    std::uint64_t sequence = 0;     ///< of the last operation that was enqueued
    struct Pending {
      Posting posting;
      WorkLabel label;
    };
    std::deque<Pending> pending;
    std::mutex busy;
  };

  /// Holds a communicator for the calls of this thread, so that it is not freed under them. Throws
  /// what `check` throws.
  class Turn {
   public:
    Turn(NcclWatch& watch, Member& member) : lock_(member.busy) { watch.check(); }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// `control` outlives it.
  NcclWatch(Communicator& control, Device device, NcclOptions options);
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;
  ~NcclWatch() override;

  /// Takes over a communicator, which may still be starting.
  Member& add(ncclComm_t comm, const std::string& name);
  /// Ends the communicator. Orderly ends have synchronised their streams before; what NCCL still
  /// holds for peers is sent first, for ten seconds at most. After a failure the thread
  /// aborts, all at once, which does not wait for peers.
  void remove(Member& member) noexcept;
  /// Notes what was enqueued on `stream`. Operations of a captured graph are not followed one by
  /// one; the host's waits for them are, by the marks of their label.
  void enqueued(Member& member, Posting posting, CudaStream& stream);
  /// Waits for a communicator that `call` keeps busy: its start, a split, or an operation that is
  /// the first of its kind and connects the ranks.
  void wait_until_ready(const Member& member, const char* call);

  /// From any thread: fails the root here, and tells the other ranks.
  void abandon(const std::string& reason) noexcept;
  /// Does that and throws CommunicationError.
  [[noreturn]] void give_up(const std::string& reason);

  double timeout_seconds() const { return options_.timeout_seconds; }
  /// In host memory that kernels can read: not 0 once the root has failed.
  const std::uint32_t* failed_word() const { return words_; }

  void start_wait(const std::string& stream, const WorkLabel& label) override;
  void end_wait() noexcept override;
  void check() override;

 private:
  using Clock = std::chrono::steady_clock;

  std::uint32_t* unused_word();
  void run();
  bool finalize(Member& member) noexcept;
  void abort_members(std::unique_lock<std::mutex>& lock);
  // With the mutex held:
  void look();
  void fail(const std::string& reason);
  void resort();
  void retire(Member& member);
  void follow_recording();
  bool is_pending() const;
  std::string error_of_peers();
  std::string error_of(const Member& member) const;
  std::string stall() const;
  std::string pending_text() const;

  Communicator& control_;
  NcclOptions options_;
  decltype(&cuStreamWriteValue32) write_;
  std::unique_ptr<Memory> host_memory_;
  Buffer buffer_;
  std::uint32_t* words_;  ///< the failed word, then one for each member

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable aborted_;
  std::list<Member> members_;
  int waiting_ = 0;             ///< host threads that wait
  std::string waiting_stream_;  ///< what the last of them waits for
  WorkLabel waiting_label_;
  std::uint64_t recorded_progress_ = 0;
  Clock::time_point progress_ = Clock::now();
  Clock::time_point failed_at_;
  bool stopping_ = false;
  bool resorted_ = false;
  std::string failure_;  ///< written once, before `failed_` is set
  std::atomic<bool> failed_{false};
  std::atomic<bool> noticed_{false};
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace sherd
