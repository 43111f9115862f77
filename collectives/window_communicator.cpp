#include "collectives/window_communicator.h"

#include <algorithm>
#include <cstring>

#include "collectives/arguments.h"
#include "core/counted.h"

namespace sherd {

WindowCommunicator::WindowCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name)
    : MpiCommunicator(root, host_comm, std::move(name)),
      board_(root.context.make_board(host_comm, root.options.staging_bytes)),
      sources_(static_cast<std::size_t>(size())) {
  for (const NodePlace& place : root.context.places(host_comm)) node_ranks_.push_back(place.rank);
}

WindowCommunicator::~WindowCommunicator() { abandon_if_unwinding(); }

std::string WindowCommunicator::description() const {
  return fmt::format("mpi (shared window), '{}', {} of one node", name(), counted(size(), "rank"));
}

void WindowCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                    std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const Shard mine = ranges[static_cast<std::size_t>(rank())];
  const bool in_place = is_in_place(own, out, mine);
  Posting posting = make_posting(Operation::all_gather, out.dtype(), ranges);
  place(posting, own);
  // The own range of `out` gets a copy in any case: peers can read that where `own` can't be read.
  if (posting.staged) place(posting, out.flat(mine));
  if (!in_place) {
    enqueue(stream, [own, copy = out.flat(mine)] {
      std::memcpy(copy.data(), own.data(), static_cast<std::size_t>(own.size_bytes()));
    });
  }
  launch(stream, posting, [this, out, all = std::vector<Shard>(ranges.begin(), ranges.end())] {
    run_all_gather(out, all);
  });
}

void WindowCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                        std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  place(posting, in);
  launch(stream, posting, [this, in, own, all = std::vector<Shard>(ranges.begin(), ranges.end())] {
    run_reduce_scatter(in, own, all);
  });
}

void WindowCommunicator::all_reduce(const Tensor& x, ReduceOp op, Stream& stream) {
  check_all_reduce(*this, x);
  Posting posting = make_posting(Operation::all_reduce, x);
  posting.reduce = op;
  place(posting, x);
  launch(stream, posting, [this, x] { run_all_reduce(x); });
}

void WindowCommunicator::broadcast(const Tensor& x, int root, Stream& stream) {
  check_broadcast(*this, x, root);
  Posting posting = make_posting(Operation::broadcast, x);
  posting.peer = root;
  if (rank() == root) place(posting, x);
  launch(stream, posting, [this, x] { run_broadcast(x); });
}

void WindowCommunicator::exchange_postings() {
  board_.post(current());
  meet();
}

void WindowCommunicator::meet() {
  board_.arrive(++phase_);
  Patience patience(timeout());
  for (int r = 0; r < size(); ++r) {
    while (!board_.has_arrived(r, phase_)) {
      check_peers();
      if (patience.pause()) continue;
      std::vector<int> missing;
      for (int late = r; late < size(); ++late) {
        if (!board_.has_arrived(late, phase_)) missing.push_back(late);
      }
      if (!missing.empty()) throw_late(missing);
    }
  }
}

void WindowCommunicator::place(Posting& posting, const Tensor& x) const {
  posting.staged = false;
  if (size() == 1 || x.numel() == 0) return;
  const auto found = root().windows->find(x.data());
  posting.staged = !found;
  if (!found) return;
  posting.segment = found->segment;
  posting.offset_bytes = found->offset_bytes;
}

bool WindowCommunicator::is_anyone_staged() const {
  for (int r = 0; r < size(); ++r) {
    if (is_staged(r)) return true;
  }
  return false;
}

std::byte* WindowCommunicator::tensor_of(int r) const {
  const Posting& place = posting(r);
  if (place.segment < 0) return nullptr;  // it has no elements
  return root().windows->address(node_ranks_[static_cast<std::size_t>(r)],
                                 {place.segment, place.offset_bytes});
}

void WindowCommunicator::stage(const void* data, std::int64_t bytes, std::int64_t offset_bytes) {
  std::memcpy(board_.staging(rank()) + offset_bytes, data, static_cast<std::size_t>(bytes));
}

}  // namespace sherd
