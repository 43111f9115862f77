// What the ranks of a shared-memory communicator do once all have posted the same operation.
// Between two meetings a rank writes only what no other rank reads: its results, or its staging
// area.

#include <algorithm>
#include <cstring>

#include "collectives/pieces.h"
#include "collectives/reduce.h"
#include "collectives/window_communicator.h"

namespace sherd {
namespace {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

std::byte* element(const Tensor& x, std::int64_t index) {
  return static_cast<std::byte*>(x.data()) + index * size_of(x.dtype());
}

std::int64_t longest(std::span<const Shard> ranges) {
  std::int64_t numel = 0;
  for (const Shard& range : ranges) numel = std::max(numel, range.numel);
  return numel;
}

}  // namespace

void WindowCommunicator::run_all_gather(const Tensor& out, std::span<const Shard> ranges) {
  const std::int64_t item = size_of(out.dtype());
  const std::int64_t limit = board_.staging_bytes() / item;
  const Shard mine = ranges[static_cast<std::size_t>(rank())];
  std::int64_t rounds = 0;
  for (int step = 1; step < size(); ++step) {  // not all from rank 0 first
    const int r = (rank() + step) % size();
    const Shard range = ranges[static_cast<std::size_t>(r)];
    if (is_staged(r)) {
      rounds = std::max(rounds, count_pieces(range.numel, limit));
    } else {
      copy_bytes(element(out, range.offset), tensor_of(r), range.numel * item);
    }
  }
  if (is_staged(rank())) rounds = std::max(rounds, count_pieces(mine.numel, limit));

  for (std::int64_t i = 0; i < rounds; ++i) {
    if (i > 0) meet();
    if (is_staged(rank())) {
      const Shard piece = piece_of(mine, i, limit);
      stage(element(out, piece.offset), piece.numel * item);
    }
    meet();
    for (int r = 0; r < size(); ++r) {
      if (r == rank() || !is_staged(r)) continue;
      const Shard piece = piece_of(ranges[static_cast<std::size_t>(r)], i, limit);
      copy_bytes(element(out, piece.offset), board_.staging(r), piece.numel * item);
    }
  }
}

void WindowCommunicator::run_reduce_scatter(const Tensor& in, const Tensor& own,
                                            std::span<const Shard> ranges) {
  const std::int64_t item = size_of(in.dtype());
  const bool staging = is_anyone_staged();
  const std::int64_t most = std::max<std::int64_t>(1, longest(ranges));
  const std::int64_t limit = staging ? board_.staging_bytes() / size() / item : most;
  const Shard mine = ranges[static_cast<std::size_t>(rank())];
  const std::int64_t rounds = count_pieces(longest(ranges), limit);
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (staging && i > 0) meet();
    for (int r = 0; r < size() && is_staged(rank()); ++r) {
      const Shard piece = piece_of(ranges[static_cast<std::size_t>(r)], i, limit);
      if (r != rank()) stage(element(in, piece.offset), piece.numel * item, r * limit * item);
    }
    if (staging) meet();
    reduce_piece(in, own, mine, piece_of(mine, i, limit), limit * item);
  }
}

void WindowCommunicator::reduce_piece(const Tensor& in, const Tensor& own, Shard mine, Shard piece,
                                      std::int64_t slot_bytes) {
  if (piece.numel == 0) return;
  const std::int64_t offset_bytes = piece.offset * size_of(in.dtype());
  for (int r = 0; r < size(); ++r) {
    const void*& source = sources_[static_cast<std::size_t>(r)];
    if (r == rank()) {
      source = element(in, piece.offset);
    } else if (is_staged(r)) {
      source = board_.staging(r) + rank() * slot_bytes;
    } else {
      source = tensor_of(r) + offset_bytes;
    }
  }
  reduce_sources(sources_, in.dtype(), piece.numel, ReduceOp::sum,
                 element(own, piece.offset - mine.offset), own.dtype());
}

void WindowCommunicator::run_all_reduce(const Tensor& x) {
  const bool staging = is_anyone_staged();
  const std::int64_t most = std::max<std::int64_t>(1, x.numel());
  const std::int64_t limit = staging ? board_.staging_bytes() / size_of(x.dtype()) : most;
  const std::int64_t rounds = count_pieces(x.numel(), limit);
  for (std::int64_t i = 0; i < rounds; ++i) {
    const Shard piece = piece_of({0, x.numel()}, i, limit);
    const Tensor part = x.flat(piece);
    if (staging && i > 0) meet();
    if (is_staged(rank())) stage(part.data(), part.size_bytes());
    if (staging) meet();
    reduce_slices(part, piece.offset * size_of(x.dtype()));
  }
}

void WindowCommunicator::reduce_slices(const Tensor& part, std::int64_t offset_bytes) {
  const std::int64_t item = size_of(part.dtype());
  const auto visible = [&](int r) {  // where all ranks see rank r's part
    if (is_staged(r)) return board_.staging(r);
    return r == rank() ? element(part, 0) : tensor_of(r) + offset_bytes;
  };
  const auto slice = [&](int r) { return even_part(part.numel(), size(), r); };
  const Shard mine = slice(rank());
  for (int r = 0; r < size(); ++r) {
    sources_[static_cast<std::size_t>(r)] = visible(r) + mine.offset * item;
  }
  // Nobody but this rank reads its own slice of its own part before the meeting.
  reduce_sources(sources_, part.dtype(), mine.numel, current().reduce,
                 visible(rank()) + mine.offset * item, part.dtype());
  meet();
  for (int r = 0; r < size(); ++r) {
    const Shard range = slice(r);
    std::byte* to = element(part, range.offset);
    const std::byte* from = visible(r) + range.offset * item;
    if (from != to) copy_bytes(to, from, range.numel * item);
  }
}

void WindowCommunicator::run_broadcast(const Tensor& x) {
  const int root = current().peer;
  if (!is_staged(root)) {
    if (rank() != root) copy_bytes(x.data(), tensor_of(root), x.size_bytes());
    return;
  }
  const Shard all{0, x.size_bytes()};
  const std::int64_t limit = board_.staging_bytes();
  for (std::int64_t i = 0; i < count_pieces(all.numel, limit); ++i) {
    const Shard piece = piece_of(all, i, limit);
    std::byte* part = static_cast<std::byte*>(x.data()) + piece.offset;
    if (i > 0) meet();
    if (rank() == root) stage(part, piece.numel);
    meet();
    if (rank() != root) copy_bytes(part, board_.staging(root), piece.numel);
  }
}

}  // namespace sherd
