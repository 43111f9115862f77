#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/mpi_communicator.h"

namespace sherd {

/// Ranks of one node. Each reads its peers' tensors where they lie, when they lie in `memory()`;
/// others pass through the board's staging areas piece by piece, with the same arithmetic. Ranks
/// meet (all have arrived) before they read and before they go on.
class WindowCommunicator final : public MpiCommunicator {
 public:
  WindowCommunicator(const MpiRoot& root, MPI_Comm host_comm, std::string name);
  WindowCommunicator(const WindowCommunicator&) = delete;
  WindowCommunicator& operator=(const WindowCommunicator&) = delete;
  /// Tells the other ranks when it is an exception that ends this communicator.
  ~WindowCommunicator() override;

  std::string description() const override;
  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override;
  void broadcast(const Tensor& x, int root, Stream& stream) override;

 private:
  void exchange_postings() override;
  const Posting& posting(int r) const override { return board_.posting(r); }
  void finish() override { meet(); }
  std::optional<PeerFailure> find_failed_peer() override { return board_.failure(); }
  void announce_failure(const char* reason) noexcept override { board_.announce_failure(reason); }

  void meet();
  /// Fills in where `x` can be read.
  void place(Posting& posting, const Tensor& x) const;
  bool is_staged(int r) const { return posting(r).staged; }
  bool is_anyone_staged() const;
  /// Rank r's tensor in this process; not for a staged one.
  std::byte* tensor_of(int r) const;
  /// Copies `bytes` of this rank into its staging area.
  void stage(const void* data, std::int64_t bytes, std::int64_t offset_bytes = 0);

  void run_all_gather(const Tensor& out, std::span<const Shard> ranges);
  void run_reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges);
  void reduce_piece(const Tensor& in, const Tensor& own, Shard mine, Shard piece,
                    std::int64_t slot_bytes);
  void run_all_reduce(const Tensor& x);
  void reduce_slices(const Tensor& part, std::int64_t offset_bytes);
  void run_broadcast(const Tensor& x);

  SharedBoard& board_;
  std::vector<int> node_ranks_;  // of this communicator's ranks
  std::uint64_t phase_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace sherd
