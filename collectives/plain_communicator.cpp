#include "collectives/plain_communicator.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "collectives/arguments.h"
#include "collectives/mpi_check.h"
#include "collectives/pieces.h"
#include "core/counted.h"

namespace sherd {
namespace {

/// Operations that MPI has itself. Its min and max of floats lose NaNs.
bool has_mpi_reduction(DType dtype, ReduceOp op) {
  const bool is_integer = dtype == DType::i32 || dtype == DType::i64;
  const bool is_float = dtype == DType::f32 || dtype == DType::f64;
  return is_integer || (is_float && op == ReduceOp::sum);
}

std::vector<Shard> cut_evenly(std::int64_t numel, int count) {
  std::vector<Shard> parts;
  parts.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) parts.push_back(even_part(numel, count, i));
  return parts;
}

}  // namespace

PlainCommunicator::PlainCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name)
    : MpiCommunicator(root, host_comm, std::move(name)),
      numbers_(root.context.own_memory(), static_cast<std::int64_t>(2 * sizeof(int)) * size()),
      counts_(static_cast<int*>(numbers_.data()), static_cast<std::size_t>(size())),
      offsets_(counts_.data() + size(), counts_.size()),
      arrivals_(root.context.own_memory(), root.options.staging_bytes),
      sources_(static_cast<std::size_t>(size())) {
  requests_.reserve(2 * static_cast<std::size_t>(size()));
}

PlainCommunicator::~PlainCommunicator() { abandon_if_unwinding(); }

std::string PlainCommunicator::description() const {
  std::set<int> nodes;
  for (const NodePlace& place : root().context.places(comm())) nodes.insert(place.node);
  return fmt::format("mpi (plain), '{}', {} on {}", name(), counted(size(), "rank"),
                     counted(static_cast<std::int64_t>(nodes.size()), "node"));
}

void PlainCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                   std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const Tensor mine = out.flat(ranges[static_cast<std::size_t>(rank())]);
  const Posting posting = make_posting(Operation::all_gather, out.dtype(), ranges);
  const bool in_place = mine.numel() == 0 || own.data() == mine.data();
  launch(stream, posting,
         [this, own, mine, in_place, out, all = std::vector<Shard>(ranges.begin(), ranges.end())] {
           if (!in_place) {
             std::memcpy(mine.data(), own.data(), static_cast<std::size_t>(own.size_bytes()));
           }
           gather_ranges(out, all);
         });
}

void PlainCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                       std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  const Shard mine = ranges[static_cast<std::size_t>(rank())];
  posting.in_place = mine.numel > 0 && is_in_place(own, in, mine);
  launch(stream, posting, [this, in, own, all = std::vector<Shard>(ranges.begin(), ranges.end())] {
    if (has_mpi_reduction(in.dtype(), ReduceOp::sum)) {
      reduce_ranges(in, own, all);
    } else {
      swap_and_reduce(in, own, all, ReduceOp::sum);
    }
  });
}

void PlainCommunicator::all_reduce(const Tensor& x, ReduceOp op, Stream& stream) {
  check_all_reduce(*this, x);
  Posting posting = make_posting(Operation::all_reduce, x);
  posting.reduce = op;
  if (has_mpi_reduction(x.dtype(), op)) {
    launch(stream, posting, [this, x] { reduce_all(x); });
    return;
  }
  const Tensor flat = x.flat({0, x.numel()});
  launch(stream, posting, [this, flat, slices = cut_evenly(x.numel(), size())] {
    const Tensor mine = flat.flat(slices[static_cast<std::size_t>(rank())]);
    swap_and_reduce(flat, mine, slices, current().reduce);
    gather_ranges(flat, slices);
  });
}

void PlainCommunicator::broadcast(const Tensor& x, int root, Stream& stream) {
  check_broadcast(*this, x, root);
  Posting posting = make_posting(Operation::broadcast, x);
  posting.peer = root;
  launch(stream, posting, [this, x] { broadcast_from(current().peer, x); });
}

void PlainCommunicator::exchange_postings() {
  if (!exchange().run(current(), [this] { check_peers(); })) throw_late(exchange().missing());
}

std::optional<PeerFailure> PlainCommunicator::find_failed_peer() {
  constexpr int kTag = static_cast<int>(MessageTag::failure);
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;  // of one thread only, however many look
  MPI_Status status;
  SHERD_CHECK_MPI(MPI_Improbe(MPI_ANY_SOURCE, kTag, comm(), &found, &message, &status));
  if (found == 0) return std::nullopt;
  Reason reason{};
  SHERD_CHECK_MPI(MPI_Mrecv(reason.data(), kReasonBytes, MPI_CHAR, &message, MPI_STATUS_IGNORE));
  return PeerFailure{status.MPI_SOURCE, reason.data()};
}

void PlainCommunicator::announce_failure(const char* reason) noexcept {
  constexpr int kTag = static_cast<int>(MessageTag::failure);
  std::strncpy(reason_.data(), reason, kReasonBytes - 1);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(reason_.data(), kReasonBytes, MPI_CHAR, r, kTag, comm(), &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);  // short enough to be on its way
  }
}

}  // namespace sherd
