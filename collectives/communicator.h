#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/buffer.h"
#include "core/shard.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace sherd {

enum class ReduceOp { sum, min, max };

/// Collectives over a fixed set of ranks, enqueued on a stream and executed in its order. All ranks
/// enqueue the same operations in the same order on one communicator; operations of different
/// communicators may overlap. Buffers must stay untouched until the operation has run. Float sums
/// are made in f32 in rank order 0 … size-1, whatever the wire dtype, so all backends on which all
/// ranks share a node agree bit for bit; integer sums are exact. Errors of an operation (a peer is
/// lost, late, or runs another operation) are CommunicationErrors thrown by the stream.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Where the tensors of its operations live.
  virtual Device device() const { return {}; }
  /// "mpi (shared window)", for people.
  virtual std::string description() const = 0;

  /// Collective on the host: the ranks with equal `color` (0 or above) form a communicator, ordered
  /// by `key`, then by rank.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name) = 0;

  /// The same ranks' communicator of hosts, where they agree on what to enqueue: this one on CPUs.
  virtual Communicator& hosts() { return *this; }

  /// Memory from which this communicator, its root and their splits can send and receive without
  /// staging; lives as long as the root. Any other memory works too. Taking is collective over the
  /// ranks of the root, each with a number of bytes above 0 of its own; giving back is local.
  virtual Memory& memory() = 0;

  /// out[ranges[r]] = what rank r passed as `own` (ranges[r].numel elements), for all r. ranges are
  /// the same on all ranks, disjoint, may be uneven or empty; elements between them are left alone.
  /// `own` may be its own range of `out` (in place).
  virtual void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                          Stream& stream) = 0;

  /// own = sum over ranks of in[ranges[rank()]]. `in` has one dtype on all ranks; `own` has it too,
  /// or is f32 where `in` is bf16 or f16. `own` may be its own range of `in`.
  virtual void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                              Stream& stream) = 0;

  /// x = op over ranks, in place, the same bits on every rank. f32, f64, bf16, f16, i32, i64. On
  /// CPUs the min or max of floats is NaN where one of them is.
  virtual void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) = 0;

  /// x on every rank becomes root's.
  virtual void broadcast(const Tensor& x, int root, Stream& stream) = 0;

  /// Point to point, matched in order for each pair; do not overlap with collectives of this
  /// communicator out of order.
  virtual void send(const Tensor& x, int to, Stream& stream) = 0;
  virtual void recv(const Tensor& x, int from, Stream& stream) = 0;

  /// Every rank's earlier operations on `stream` are done before any rank's later ones start.
  virtual void barrier(Stream& stream) = 0;

  /// From any thread: this rank takes part no more. Operations that wait for it or here, and those
  /// to come, fail at once on all ranks, with CommunicationErrors that give the reason.
  virtual void abandon(const std::string& /*reason*/) noexcept {}

  /// Throws CommunicationError when a rank is known to have failed; does not wait. Any thread may
  /// ask.
  virtual void check_peers() {}
};

}  // namespace sherd
