#pragma once

#include <memory>
#include <span>
#include <string>

#include "collectives/communicator.h"

namespace sherd {

/// The communicator of a process that is alone: copies where two tensors are not the same memory.
class SoloCommunicator final : public Communicator {
 public:
  SoloCommunicator();

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string description() const override { return "solo (one rank)"; }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  Memory& memory() override { return memory_; }

  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override;
  void broadcast(const Tensor& x, int root, Stream& stream) override;
  /// There is nobody to send to or receive from: both throw ArgumentError.
  void send(const Tensor& x, int to, Stream& stream) override;
  void recv(const Tensor& x, int from, Stream& stream) override;
  void barrier(Stream& stream) override;

 private:
  explicit SoloCommunicator(Memory& memory) : memory_(memory) {}
  HostMemory own_memory_;
  Memory& memory_;  // the root communicator's
};

}  // namespace sherd
