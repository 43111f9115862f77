// What the ranks do over plain MPI once all have posted the same operation. MPI counts are ints:
// what is longer goes in pieces, addressed by pointers.

#include <algorithm>

#include "collectives/mpi_check.h"
#include "collectives/pieces.h"
#include "collectives/plain_communicator.h"
#include "collectives/reduce.h"

namespace sherd {
namespace {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return MPI_UINT8_T;
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return MPI_INT16_T;  // moved, never added
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

std::byte* element(const Tensor& x, std::int64_t index) {
  return static_cast<std::byte*>(x.data()) + index * size_of(x.dtype());
}

/// The ranges follow each other in rank order, which MPI_Reduce_scatter demands.
bool is_packed(std::span<const Shard> ranges) {
  std::int64_t next = -1;
  for (const Shard& range : ranges) {
    if (range.numel == 0) continue;
    if (next >= 0 && range.offset != next) return false;
    next = range.end();
  }
  return true;
}

std::int64_t first_offset(std::span<const Shard> ranges) {
  for (const Shard& range : ranges) {
    if (range.numel > 0) return range.offset;
  }
  return 0;
}

std::int64_t last_end(std::span<const Shard> ranges) {
  std::int64_t end = 0;
  for (const Shard& range : ranges) end = std::max(end, range.end());
  return end;
}

}  // namespace

std::int64_t PlainCommunicator::message_numel(DType dtype) const {
  return root().options.message_bytes / size_of(dtype);
}

void PlainCommunicator::gather_ranges(const Tensor& out, std::span<const Shard> ranges) {
  if (last_end(ranges) > message_numel(out.dtype())) {
    for (int r = 0; r < size(); ++r) {
      broadcast_from(r, out.flat(ranges[static_cast<std::size_t>(r)]));
    }
    return;
  }
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    counts_[r] = static_cast<int>(ranges[r].numel);
    offsets_[r] = ranges[r].numel == 0 ? 0 : static_cast<int>(ranges[r].offset);
  }
  const MPI_Datatype type = mpi_type(out.dtype());
  MPI_Request request = MPI_REQUEST_NULL;
  SHERD_CHECK_MPI(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, out.data(), counts_.data(),
                                  offsets_.data(), type, comm(), &request));
  wait_for(request);
}

void PlainCommunicator::reduce_ranges(const Tensor& in, const Tensor& own,
                                      std::span<const Shard> ranges) {
  bool in_place = false;
  for (int r = 0; r < size(); ++r) in_place = in_place || posting(r).in_place;
  const std::int64_t first = first_offset(ranges);
  if (in_place || !is_packed(ranges) || last_end(ranges) - first > message_numel(in.dtype())) {
    for (int r = 0; r < size(); ++r) {
      reduce_range_to(r, in, own, ranges[static_cast<std::size_t>(r)]);
    }
    return;
  }
  for (std::size_t r = 0; r < ranges.size(); ++r) counts_[r] = static_cast<int>(ranges[r].numel);
  MPI_Request request = MPI_REQUEST_NULL;
  SHERD_CHECK_MPI(MPI_Ireduce_scatter(element(in, first), own.data(), counts_.data(),
                                      mpi_type(in.dtype()), MPI_SUM, comm(), &request));
  wait_for(request);
}

void PlainCommunicator::reduce_range_to(int root, const Tensor& in, const Tensor& own,
                                        Shard range) {
  const std::int64_t limit = message_numel(in.dtype());
  for (std::int64_t i = 0; i < count_pieces(range.numel, limit); ++i) {
    const Shard piece = piece_of(range, i, limit);
    const void* from = element(in, piece.offset);
    void* to = rank() == root ? element(own, piece.offset - range.offset) : nullptr;
    MPI_Request request = MPI_REQUEST_NULL;
    SHERD_CHECK_MPI(MPI_Ireduce(from == to ? MPI_IN_PLACE : from, to, static_cast<int>(piece.numel),
                                mpi_type(in.dtype()), MPI_SUM, root, comm(), &request));
    wait_for(request);
  }
}

void PlainCommunicator::reduce_all(const Tensor& x) {
  const std::int64_t limit = message_numel(x.dtype());
  for (std::int64_t i = 0; i < count_pieces(x.numel(), limit); ++i) {
    const Shard piece = piece_of({0, x.numel()}, i, limit);
    MPI_Request request = MPI_REQUEST_NULL;
    SHERD_CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, element(x, piece.offset),
                                   static_cast<int>(piece.numel), mpi_type(x.dtype()),
                                   mpi_op(current().reduce), comm(), &request));
    wait_for(request);
  }
}

void PlainCommunicator::swap_and_reduce(const Tensor& in, const Tensor& own,
                                        std::span<const Shard> ranges, ReduceOp op) {
  const std::int64_t limit = slot_bytes() / size_of(in.dtype());
  const Shard mine = ranges[static_cast<std::size_t>(rank())];
  std::int64_t rounds = 0;
  for (const Shard& range : ranges) rounds = std::max(rounds, count_pieces(range.numel, limit));
  for (std::int64_t i = 0; i < rounds; ++i) {
    swap_pieces(in, ranges, i, limit);
    const Shard piece = piece_of(mine, i, limit);
    for (int r = 0; r < size(); ++r) sources_[static_cast<std::size_t>(r)] = slot(r);
    sources_[static_cast<std::size_t>(rank())] = element(in, piece.offset);
    reduce_sources(sources_, in.dtype(), piece.numel, op, element(own, piece.offset - mine.offset),
                   own.dtype());
  }
}

void PlainCommunicator::swap_pieces(const Tensor& in, std::span<const Shard> ranges,
                                    std::int64_t index, std::int64_t limit) {
  constexpr int kTag = static_cast<int>(MessageTag::data);
  const MPI_Datatype type = mpi_type(in.dtype());
  const Shard mine = piece_of(ranges[static_cast<std::size_t>(rank())], index, limit);
  requests_.clear();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const Shard theirs = piece_of(ranges[static_cast<std::size_t>(r)], index, limit);
    requests_.resize(requests_.size() + 2, MPI_REQUEST_NULL);
    MPI_Request* pair = &requests_[requests_.size() - 2];
    SHERD_CHECK_MPI(
        MPI_Irecv(slot(r), static_cast<int>(mine.numel), type, r, kTag, comm(), &pair[0]));
    SHERD_CHECK_MPI(MPI_Isend(element(in, theirs.offset), static_cast<int>(theirs.numel), type, r,
                              kTag, comm(), &pair[1]));
  }
  wait(requests_);
}

std::int64_t PlainCommunicator::slot_bytes() const {
  constexpr std::int64_t kSlotAlignment = 64;
  const std::int64_t even = arrivals_.size_bytes() / size();
  return even / kSlotAlignment * kSlotAlignment;
}

void PlainCommunicator::broadcast_from(int root, const Tensor& x) {
  const std::int64_t limit = message_numel(x.dtype());
  for (std::int64_t i = 0; i < count_pieces(x.numel(), limit); ++i) {
    const Shard piece = piece_of({0, x.numel()}, i, limit);
    MPI_Request request = MPI_REQUEST_NULL;
    SHERD_CHECK_MPI(MPI_Ibcast(element(x, piece.offset), static_cast<int>(piece.numel),
                               mpi_type(x.dtype()), root, comm(), &request));
    wait_for(request);
  }
}

}  // namespace sherd
