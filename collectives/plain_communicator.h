#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/mpi_communicator.h"
#include "core/buffer.h"

namespace sherd {

/// Ranks of several nodes, or the reference inside one: MPI's own collectives where they exist, so
/// that MPI chooses the order of f32 and f64 sums; rank order where they don't (16-bit floats, min
/// and max of floats). Every wait looks, yields and gives up after the timeout.
class PlainCommunicator final : public MpiCommunicator {
 public:
  PlainCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name);
  PlainCommunicator(const PlainCommunicator&) = delete;
  PlainCommunicator& operator=(const PlainCommunicator&) = delete;
  /// Tells the other ranks when it is an exception that ends this communicator.
  ~PlainCommunicator() override;

  std::string description() const override;
  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override;
  void broadcast(const Tensor& x, int root, Stream& stream) override;

 private:
  static constexpr std::size_t kReasonBytes = 512;
  using Reason = std::array<char, kReasonBytes>;

  void exchange_postings() override;
  const Posting& posting(int r) const override { return exchange()[r]; }
  void finish() override {}
  std::optional<PeerFailure> find_failed_peer() override;
  void announce_failure(const char* reason) noexcept override;

  /// Elements that one message may hold.
  std::int64_t message_numel(DType dtype) const;
  /// Every rank's own range of `out` is in place already.
  void gather_ranges(const Tensor& out, std::span<const Shard> ranges);
  void reduce_ranges(const Tensor& in, const Tensor& own, std::span<const Shard> ranges);
  void reduce_range_to(int root, const Tensor& in, const Tensor& own, Shard range);
  /// Sends each rank its range and reduces what comes, in rank order.
  void swap_and_reduce(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                       ReduceOp op);
  void swap_pieces(const Tensor& in, std::span<const Shard> ranges, std::int64_t index,
                   std::int64_t limit);
  /// Of each rank's part of `arrivals_`.
  std::int64_t slot_bytes() const;
  void reduce_all(const Tensor& x);
  void broadcast_from(int root, const Tensor& x);
  void wait_for(MPI_Request request) { wait(std::span(&request, 1)); }

  std::byte* slot(int r) const {
    return static_cast<std::byte*>(arrivals_.data()) + r * slot_bytes();
  }

  Buffer numbers_;  // counts_ and offsets_, which MPI reads until a collective ends
  std::span<int> counts_;
  std::span<int> offsets_;
  std::vector<MPI_Request> requests_;
  Buffer arrivals_;  // of swap_pieces: one slot a rank
  std::vector<const void*> sources_;
  Reason reason_{};
};

}  // namespace sherd
