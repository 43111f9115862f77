#include "collectives/nccl_watch.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/nccl_check.h"
#include "core/backend.h"
#include "core/cuda/check.h"
#include "core/error.h"

namespace sherd {
namespace {

constexpr std::int64_t kWordsBytes = 4096;
constexpr std::int64_t kWords = kWordsBytes / static_cast<std::int64_t>(sizeof(std::uint32_t));
constexpr std::chrono::milliseconds kPeriod{20};
/// How long the host may go on after a failure without asking for it.
constexpr std::chrono::seconds kNoticeTime{10};
/// How long what NCCL still holds for peers may take at the end.
constexpr std::chrono::seconds kFlushTime{10};

/// The driver's function, found at run time: programs start where there is no driver too.
decltype(&cuStreamWriteValue32) find_write_value() {
  constexpr unsigned kVersion = 12000;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  SHERD_CHECK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &found, kVersion,
                                               cudaEnableDefault, &result));
  require(result == cudaDriverEntryPointSuccess, "this driver has no cuStreamWriteValue32");
  return reinterpret_cast<decltype(&cuStreamWriteValue32)>(found);
}

std::string with_label(const Posting& posting, const WorkLabel& label) {
  const std::string where = describe(label);
  return where.empty() ? describe(posting) : describe(posting) + " in " + where;
}

}  // namespace

NcclWatch::NcclWatch(Communicator& control, Device device, NcclOptions options)
    : control_(control),
      options_(std::move(options)),
      write_(find_write_value()),
      host_memory_(make_host_memory(device)),
      buffer_(*host_memory_, kWordsBytes),
      words_(static_cast<std::uint32_t*>(buffer_.data())) {
  std::fill_n(words_, kWords, 0u);
  thread_ = std::thread([this] { run(); });
}

NcclWatch::~NcclWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

NcclWatch::Member& NcclWatch::add(ncclComm_t comm, const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::uint32_t* word = unused_word();
  Member& member = members_.emplace_back();
  member.comm = comm;
  member.name = name;
  member.done = word;
  *word = 0;
  return member;
}

std::uint32_t* NcclWatch::unused_word() {
  for (std::uint32_t* word = words_ + 1; word < words_ + kWords; ++word) {
    const auto uses = [word](const Member& member) { return member.done == word; };
    if (std::none_of(members_.begin(), members_.end(), uses)) return word;
  }
  throw ArgumentError(fmt::format("a root has at most {} communicators", kWords - 1));
}

/// An operation between machines that has ended here may still be on its way: its kernel hands the
/// last bytes to a thread of NCCL's, which an abort would stop.
bool NcclWatch::finalize(Member& member) noexcept {
  const std::lock_guard busy(member.busy);
  if (failed_.load(std::memory_order_acquire) || member.comm == nullptr) return false;
  const auto deadline = Clock::now() + kFlushTime;
  ncclResult_t state = ncclCommFinalize(member.comm);
  while (state == ncclInProgress) {
    if (failed_.load(std::memory_order_acquire) || Clock::now() > deadline) return false;
    sched_yield();
    const ncclResult_t asked = ncclCommGetAsyncError(member.comm, &state);
    if (asked != ncclSuccess) state = asked;
  }
  return state == ncclSuccess;
}

void NcclWatch::remove(Member& member) noexcept {
  const bool finalized = finalize(member);
  std::unique_lock lock(mutex_);
  const bool failed = failed_.load(std::memory_order_relaxed);
  if (failed) aborted_.wait(lock, [&member] { return member.comm == nullptr; });
  if (member.comm != nullptr) {
    finalized ? ncclCommDestroy(member.comm) : ncclCommAbort(member.comm);
  }
  members_.remove_if([&member](const Member& other) { return &other == &member; });
}

void NcclWatch::enqueued(Member& member, Posting posting, CudaStream& stream) {
  posting.sequence = ++member.sequence;
  stream.add_watch(*this);
  if (stream.capturing()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!is_pending()) progress_ = Clock::now();
    member.pending.push_back({posting, stream.label()});
  }
  // Without the mutex: behind a full queue this call waits for the device, and only the thread can
  // free that from kernels which wait for a lost peer.
  const auto word = reinterpret_cast<CUdeviceptr>(member.done);
  const auto number = static_cast<std::uint32_t>(posting.sequence);
  SHERD_CHECK(
      static_cast<cudaError_t>(write_(stream.raw(), word, number, CU_STREAM_WRITE_VALUE_DEFAULT)));
}

void NcclWatch::wait_until_ready(const Member& member, const char* call) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(options_.timeout_seconds);
  ncclResult_t state = ncclInProgress;
  while (true) {
    check();
    sherd::check(ncclCommGetAsyncError(member.comm, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    sherd::check(state, call);
    if (Clock::now() > deadline) {
      give_up(
          fmt::format("communicator '{}', {} after {} operations: not all ranks came within {:g} s",
                      member.name, call, member.sequence, options_.timeout_seconds));
    }
    sched_yield();
  }
}

void NcclWatch::start_wait(const std::string& stream, const WorkLabel& label) {
  const std::lock_guard lock(mutex_);
  ++waiting_;
  waiting_stream_ = stream;
  waiting_label_ = label;
  progress_ = Clock::now();
}

void NcclWatch::end_wait() noexcept {
  const std::lock_guard lock(mutex_);
  --waiting_;
  waiting_label_ = {};  // what it points to may go now
  progress_ = Clock::now();
}

void NcclWatch::check() {
  if (!failed_.load(std::memory_order_acquire)) return;
  noticed_.store(true, std::memory_order_relaxed);
  throw CommunicationError(failure_);
}

void NcclWatch::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kPeriod);
    if (stopping_) return;
    if (!failed_.load(std::memory_order_relaxed)) look();
    if (!failed_.load(std::memory_order_relaxed)) continue;
    abort_members(lock);
    resort();
  }
}

void NcclWatch::look() {
  for (Member& member : members_) retire(member);  // labels of what has ended may go
  std::string reason = error_of_peers();
  for (const Member& member : members_) {
    if (reason.empty()) reason = error_of(member);
  }
  follow_recording();
  if (reason.empty()) reason = stall();
  if (!reason.empty()) fail(reason);
}

void NcclWatch::abandon(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  fail(reason);
  wake_.notify_all();
}

void NcclWatch::give_up(const std::string& reason) {
  abandon(reason);
  throw CommunicationError(reason);
}

void NcclWatch::fail(const std::string& reason) {
  if (failed_.load(std::memory_order_relaxed)) return;  // the first reason is the one to give
  control_.abandon(reason);
  failure_ = reason;
  failed_at_ = Clock::now();
  std::atomic_ref(*words_).store(1, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
}

/// In one group: an abort may wait for kernels of the device, which may be those of another
/// communicator. And without the mutex, for which the host should not have to wait.
void NcclWatch::abort_members(std::unique_lock<std::mutex>& lock) {
  std::vector<ncclComm_t> comms;
  for (Member& member : members_) {
    const std::unique_lock busy(member.busy, std::try_to_lock);
    if (busy && member.comm != nullptr) comms.push_back(std::exchange(member.comm, nullptr));
  }
  if (comms.empty()) return;
  lock.unlock();
  ncclGroupStart();
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  ncclGroupEnd();
  lock.lock();
  aborted_.notify_all();
}

void NcclWatch::resort() {
  if (resorted_ || noticed_.load(std::memory_order_relaxed)) return;
  if (!options_.last_resort || Clock::now() - failed_at_ < kNoticeTime) return;
  resorted_ = true;
  options_.last_resort(failure_);
}

void NcclWatch::retire(Member& member) {
  const std::uint32_t done = std::atomic_ref(*member.done).load(std::memory_order_acquire);
  const auto has_ended = [done](const Posting& posting) {
    return static_cast<std::int32_t>(done - static_cast<std::uint32_t>(posting.sequence)) >= 0;
  };
  while (!member.pending.empty() && has_ended(member.pending.front().posting)) {
    member.pending.pop_front();
    progress_ = Clock::now();
  }
}

/// Operations of a recorded step are not pending one by one, but lanes tell how far they are.
void NcclWatch::follow_recording() {
  if (waiting_label_.recorded == nullptr) return;
  const std::uint64_t place = waiting_label_.recorded->progress();
  if (std::exchange(recorded_progress_, place) != place) progress_ = Clock::now();
}

bool NcclWatch::is_pending() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.pending.empty(); });
}

std::string NcclWatch::error_of_peers() {
  try {
    control_.check_peers();
  } catch (const std::exception& error) {
    return error.what() + pending_text();
  }
  return {};
}

std::string NcclWatch::error_of(const Member& member) const {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(member.comm, &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess || state == ncclInProgress) return {};
  return fmt::format("communicator '{}': NCCL says: {}, {}", member.name, ncclGetErrorString(state),
                     ncclGetLastError(member.comm)) +
         pending_text();
}

std::string NcclWatch::stall() const {
  if (waiting_ == 0 && !is_pending()) return {};
  const std::chrono::duration<double> idle = Clock::now() - progress_;
  if (idle.count() < options_.timeout_seconds) return {};
  return fmt::format("nothing has ended for {:g} s: a rank has stopped, or runs other operations{}",
                     options_.timeout_seconds, pending_text());
}

std::string NcclWatch::pending_text() const {
  std::string text;
  for (const Member& member : members_) {
    if (member.pending.empty()) continue;
    const Member::Pending& first = member.pending.front();
    text += fmt::format("; pending: communicator '{}', operation {}, {}", member.name,
                        first.posting.sequence, with_label(first.posting, first.label));
  }
  if (waiting_ > 0) {
    const std::string where = describe(waiting_label_);
    text += "; the host waits for the stream " + waiting_stream_;
    if (!where.empty()) text += ", at " + where;
  }
  return text;
}

}  // namespace sherd
