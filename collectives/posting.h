#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/communicator.h"

namespace sherd {

enum class Operation : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  recv,
  barrier
};

/// What a rank tells the others before an operation starts: first what must be the same on all
/// ranks, then where its tensor is. Plain bytes: it travels through shared memory and messages.
struct Posting {
  Operation operation = Operation::barrier;
  DType dtype = DType::u8;
  ReduceOp reduce = ReduceOp::sum;
  std::int32_t peer = -1;      ///< root of a broadcast, the other end of send and recv
  std::int64_t numel = 0;      ///< of the tensor, or of all ranges together
  std::uint64_t ranges = 0;    ///< fingerprint of the ranges
  std::uint64_t sequence = 0;  ///< counts the operations of a communicator, from 1

  bool in_place = false;      ///< `own` is its range of the whole tensor
  bool staged = false;        ///< the tensor is outside the windows that peers can read
  std::int32_t segment = -1;  ///< which window, when it is in one
  std::int64_t offset_bytes = 0;
};

Posting make_posting(Operation operation, const Tensor& x);
/// For the operations that cut a tensor into ranges.
Posting make_posting(Operation operation, DType dtype, std::span<const Shard> ranges);

/// True when the two ranks run the same operation on the same elements.
bool agree(const Posting& a, const Posting& b);
/// True when one rank sends what the other receives. `rank_a` posted `a`.
bool pair_up(const Posting& a, int rank_a, const Posting& b, int rank_b);

/// "reduce_scatter (sum of bf16, 1024 elements, ranges 5f3a9c12)"
std::string describe(const Posting& posting);

}  // namespace sherd
