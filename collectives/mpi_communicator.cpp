#include "collectives/mpi_communicator.h"

#include <algorithm>
#include <exception>

#include "collectives/arguments.h"
#include "collectives/mpi_check.h"
#include "collectives/pieces.h"
#include "collectives/plain_communicator.h"
#include "collectives/window_communicator.h"

namespace sherd {
namespace {

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

MpiCommunicator::MpiCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name)
    : root_(root),
      host_comm_(host_comm),
      comm_(root_.context.duplicate(host_comm)),
      name_(std::move(name)),
      timeout_(nanoseconds_of(root.options.timeout_seconds)),
      exceptions_(std::uncaught_exceptions()),
      exchange_(comm_, timeout_) {
  SHERD_CHECK_MPI(MPI_Comm_rank(comm_, &rank_));
  SHERD_CHECK_MPI(MPI_Comm_size(comm_, &size_));
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key, const std::string& name) {
  require(color >= 0, "the color of '{}' can't be negative, got {}", name, color);
  meet(host_comm_, timeout_, fmt::format("splitting '{}' from '{}'", name, name_),
       [this] { check_peers(); });
  MPI_Comm part = MPI_COMM_NULL;
  SHERD_CHECK_MPI(MPI_Comm_split(host_comm_, color, key, &part));
  return make_mpi_communicator(root_, root_.context.keep(part), name);
}

void MpiCommunicator::send(const Tensor& x, int to, Stream& stream) {
  check_peer(*this, x, to, "send to");
  transfer(Operation::send, x, to, stream);
}

void MpiCommunicator::recv(const Tensor& x, int from, Stream& stream) {
  check_peer(*this, x, from, "receive from");
  transfer(Operation::recv, x, from, stream);
}

void MpiCommunicator::barrier(Stream& stream) {
  launch(stream, Posting{}, [] {});
}

void MpiCommunicator::transfer(Operation operation, const Tensor& x, int peer, Stream& stream) {
  Posting posting = make_posting(operation, x);
  posting.peer = peer;
  enqueue(stream, [this, posting, x] {
    attempt(posting, [this, &x] {
      const int other = current_.peer;
      if (!exchange_.run(current_, std::span(&other, 1), [this] { check_peers(); })) {
        throw_late(exchange_.missing());
      }
      if (!pair_up(current_, rank_, exchange_[other], other)) {
        throw_mismatch(rank_, current_, other, exchange_[other]);
      }
      move_bytes(x);
    });
  });
}

void MpiCommunicator::move_bytes(const Tensor& x) {
  constexpr int kTag = static_cast<int>(MessageTag::data);
  const Shard all{0, x.size_bytes()};
  const std::int64_t limit = root_.options.message_bytes;
  for (std::int64_t i = 0; i < count_pieces(all.numel, limit); ++i) {
    const Shard piece = piece_of(all, i, limit);
    std::byte* first = static_cast<std::byte*>(x.data()) + piece.offset;
    const int count = static_cast<int>(piece.numel);
    MPI_Request request = MPI_REQUEST_NULL;
    if (current_.operation == Operation::send) {
      SHERD_CHECK_MPI(MPI_Isend(first, count, MPI_BYTE, current_.peer, kTag, comm_, &request));
    } else {
      SHERD_CHECK_MPI(MPI_Irecv(first, count, MPI_BYTE, current_.peer, kTag, comm_, &request));
    }
    wait(std::span(&request, 1));
  }
}

void MpiCommunicator::wait(std::span<MPI_Request> requests) {
  try {
    if (wait_all(requests, timeout_, [this] { check_peers(); })) return;
  } catch (...) {
    root_.context.unfinished().add(requests);
    throw;
  }
  root_.context.unfinished().add(requests);
  throw CommunicationError(
      fmt::format("communicator '{}', operation {}: {} did not complete within {:g} s: a rank that "
                  "had started it stopped",
                  name_, current_.sequence, describe(current_), root_.options.timeout_seconds));
}

MpiCommunicator::Turn::Turn(MpiCommunicator& communicator) : busy_(communicator.busy_) {
  require(!busy_.test_and_set(std::memory_order_acquire),
          "two streams run operations of communicator '{}' at once; give each stream its own "
          "(split), or order them with an event",
          communicator.name_);
}

void MpiCommunicator::abandon_if_unwinding() noexcept {
  if (std::uncaught_exceptions() > exceptions_) abandon("an exception ended its work");
}

void MpiCommunicator::check_peers() {
  require_usable();
  const std::optional<PeerFailure> failure = find_failed_peer();
  if (!failure) return;
  abandon(fmt::format("rank {} failed: {}", failure->rank, failure->reason));
  throw_peer_failed(failure->rank, failure->reason);
}

void MpiCommunicator::require_usable() const {
  if (!has_failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(failure_mutex_);
  throw CommunicationError(
      fmt::format("communicator '{}' can't be used after it failed: {}", name_, failure_));
}

void MpiCommunicator::abandon(const std::string& reason) noexcept {
  const std::lock_guard lock(failure_mutex_);
  if (has_failed_.load(std::memory_order_relaxed)) return;  // the first reason is the one to give
  failure_ = reason;
  has_failed_.store(true, std::memory_order_release);
  announce_failure(reason.c_str());
}

void MpiCommunicator::check_agreement() const {
  for (int r = 1; r < size_; ++r) {
    if (!agree(posting(0), posting(r))) throw_mismatch(0, posting(0), r, posting(r));
  }
}

void MpiCommunicator::throw_mismatch(int a, const Posting& runs_a, int b,
                                     const Posting& runs_b) const {
  throw CommunicationError(fmt::format(
      "communicator '{}', operation {}: rank {} runs {}, but rank {} runs {}; all ranks "
      "must enqueue the same operations in the same order",
      name_, current_.sequence, a, describe(runs_a), b, describe(runs_b)));
}

void MpiCommunicator::throw_late(std::span<const int> missing) const {
  throw CommunicationError(fmt::format(
      "communicator '{}', operation {}: {} not arrived at {} within {:g} s", name_,
      current_.sequence, have_ranks(missing), describe(current_), root_.options.timeout_seconds));
}

void MpiCommunicator::throw_peer_failed(int r, const std::string& reason) const {
  throw CommunicationError(fmt::format("communicator '{}', operation {}, {}: rank {} failed: {}",
                                       name_, current_.sequence, describe(current_), r, reason));
}

std::unique_ptr<Communicator> make_mpi_communicator(const MpiRoot& root, MPI_Comm host_comm,
                                                    const std::string& name) {
  const std::vector<NodePlace> places = root.context.places(host_comm);
  const bool is_in_node = std::all_of(places.begin(), places.end(), [&](const NodePlace& place) {
    return place.node == places[0].node;
  });
  if (root.windows != nullptr && is_in_node) {
    return std::make_unique<WindowCommunicator>(root, host_comm, name);
  }
  return std::make_unique<PlainCommunicator>(root, host_comm, name);
}

}  // namespace sherd
