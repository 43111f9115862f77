#pragma once

#include <nccl.h>

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "collectives/communicator.h"
#include "collectives/nccl_watch.h"

namespace sherd {

/// See make_nccl_communicator.
class NcclCommunicator final : public Communicator {
 public:
  /// A root: all ranks of `control`, with `id` from rank 0.
  NcclCommunicator(Communicator& control, Device device, const ncclUniqueId& id,
                   const std::string& name, const NcclOptions& options);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Device device() const override { return memory_.device(); }
  std::string description() const override;
  Memory& memory() override { return memory_; }
  Communicator& hosts() override { return control_; }
  NcclWatch& watch() { return watch_; }
  /// An operation that others carry out in this communicator's place goes through its watch too.
  NcclWatch::Member& member() { return member_; }

  /// What `split` makes.
  std::unique_ptr<NcclCommunicator> part(int color, int key, const std::string& name);
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return part(color, key, name);
  }
  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override;
  void broadcast(const Tensor& x, int root, Stream& stream) override;
  void send(const Tensor& x, int to, Stream& stream) override;
  void recv(const Tensor& x, int from, Stream& stream) override;
  void barrier(Stream& stream) override;
  void abandon(const std::string& reason) noexcept override {
    watch_.abandon(reason);
    control_.abandon(reason);  // a part's hosts wait for each other too
  }
  void check_peers() override { watch_.check(); }

 private:
  /// Part of `root`, which outlives it.
  NcclCommunicator(NcclCommunicator& root, ncclComm_t comm, std::unique_ptr<Communicator> control,
                   const std::string& name);

  /// Calls `work` with nobody else at the communicator, and has the watch follow what it enqueued.
  template <class F>
  void run(const Posting& posting, Stream& stream, F work);
  void start();
  void settle(ncclResult_t result, const char* call);
  void exchange_and_sum(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                        Stream& stream);
  void reduce_to_owners(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                        Stream& stream);

  std::unique_ptr<Communicator> owned_control_;  ///< a part's
  Communicator& control_;
  std::unique_ptr<Memory> owned_memory_;    ///< the root's
  std::unique_ptr<NcclWatch> owned_watch_;  ///< the root's
  Memory& memory_;
  NcclWatch& watch_;
  NcclWatch::Member& member_;
  int exceptions_ = std::uncaught_exceptions();  ///< in flight at construction
  int rank_ = 0;
  int size_ = 1;
};

/// make_nccl_communicator, for those who build on it.
std::unique_ptr<NcclCommunicator> start_nccl(Communicator& control, Device device,
                                             const std::string& name, const NcclOptions& options);

}  // namespace sherd
