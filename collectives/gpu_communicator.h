#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/gpu.h"
#include "collectives/nccl_communicator.h"
#include "collectives/peer_group.h"
#include "collectives/peer_thresholds.h"

namespace sherd {

/// See make_gpu_communicator.
class GpuCommunicator final : public Communicator {
 public:
  /// A root. Collective, with all ranks of `nccl`.
  GpuCommunicator(std::unique_ptr<NcclCommunicator> nccl, GpuTransport transport);

  int rank() const override { return nccl_->rank(); }
  int size() const override { return nccl_->size(); }
  Device device() const override { return nccl_->device(); }
  std::string description() const override;
  Communicator& hosts() override { return nccl_->hosts(); }
  Memory& memory() override;
  const std::vector<TransportTime>& times() const { return times_; }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override {
    nccl_->all_reduce(x, op, stream);
  }
  void broadcast(const Tensor& x, int root, Stream& stream) override {
    nccl_->broadcast(x, root, stream);
  }
  void send(const Tensor& x, int to, Stream& stream) override { nccl_->send(x, to, stream); }
  void recv(const Tensor& x, int from, Stream& stream) override { nccl_->recv(x, from, stream); }
  void barrier(Stream& stream) override { nccl_->barrier(stream); }
  void abandon(const std::string& reason) noexcept override { nccl_->abandon(reason); }
  void check_peers() override { nccl_->check_peers(); }

 private:
  /// A part of `whole`, which outlives it.
  GpuCommunicator(GpuCommunicator& whole, std::unique_ptr<NcclCommunicator> nccl);
  void open_peers(GpuTransport transport);

  // In the order in which the later use the earlier.
  std::unique_ptr<NcclCommunicator> nccl_;
  std::unique_ptr<PeerRoot> owned_peers_;  ///< the root's
  PeerRoot* peers_ = nullptr;              ///< null where GPUs don't read each other's memory
  std::unique_ptr<PeerGroup> group_;
  std::string why_no_peers_;
  PeerThresholds thresholds_;
  std::vector<TransportTime> times_;
};

}  // namespace sherd
