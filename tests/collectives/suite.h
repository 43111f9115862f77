#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "core/cpu_stream.h"

namespace sherd::test {

// What every backend must do, whichever it is and wherever its tensors are: bodies for the cases of
// solo, MPI, NCCL and peer copies.

/// A communicator under test and memory for its tensors.
struct Subject {
  Communicator& communicator;
  Memory& memory;
  Stream& stream;
  bool rank_order = true;  ///< sums of floats are made in rank order, so bits are known
};

/// Room for the tensors of one check; starts as 0xA5 in every byte.
class Arena {
 public:
  explicit Arena(Memory& memory);
  Tensor take(DType dtype, std::int64_t numel);
  void clear();

 private:
  Buffer buffer_;
  std::int64_t used_ = 0;
};

using Bytes = std::vector<std::byte>;
Bytes bytes_of(const Tensor& x);
void assign(const Tensor& x, std::span<const std::byte> bytes);

/// What rank `rank` passes in round `round` of a run: the same on whichever rank it is computed.
/// Floats are in [-1, 1), integers use all their bits.
Bytes random_bytes(DType dtype, std::int64_t numel, std::uint64_t round, int rank);

/// The operation on what all ranks passed, in rank order, written out plainly. `out_dtype` as in
/// reduce_scatter.
Bytes reduced(const std::vector<Bytes>& inputs, DType dtype, DType out_dtype, ReduceOp op);
/// Bit for bit, or within what another order of a sum of `terms` elements in [-1, 1) may change.
bool same(const Bytes& got, const Bytes& expected, DType dtype, bool exactly, int terms);

struct RangePattern {
  std::string name;
  std::int64_t numel = 0;  ///< of the whole tensor
  std::vector<Shard> ranges;
};
/// Even, uneven, empty, scattered, in reverse order, fewer elements than ranks, …
std::vector<RangePattern> range_patterns(int size);

void check_all_gather(Subject& subject);
void check_reduce_scatter(Subject& subject);
void check_all_reduce(Subject& subject);
void check_min_max_of_nan(Subject& subject);
void check_broadcast(Subject& subject);
void check_refusals(Subject& subject);

}  // namespace sherd::test
