#include "collectives/nccl.h"

#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "collectives/arguments.h"
#include "collectives/rank_sum.h"
#include "core/cpu_stream.h"
#include "core/cuda/check.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {
namespace {

using Clock = std::chrono::steady_clock;

void check(ncclResult_t result, const char* call, const char* file = __builtin_FILE(),
           int line = __builtin_LINE()) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw ApiError("NCCL", static_cast<int>(result), ncclGetErrorString(result), call, file, line);
}

/// A communicator is made without blocking, so that a rank that never comes is noticed.
void wait_until_ready(ncclComm_t comm, const std::string& name, double timeout_seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  ncclResult_t state = ncclInProgress;
  while (true) {
    check(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
    if (state == ncclSuccess) return;
    check(state, "ncclCommInitRankConfig");
    if (Clock::now() > deadline) {
      throw CommunicationError(fmt::format(
          "NCCL communicator \"{}\": not all ranks came within {} s", name, timeout_seconds));
    }
    sched_yield();
  }
}

void destroy(ncclComm_t comm) noexcept {
  // Aborting never waits for peers; orderly ends have synchronised their streams before.
  ncclCommAbort(comm);
}

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return ncclUint8;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::i16:
      break;
  }
  throw ArgumentError(fmt::format("NCCL moves no {} tensors", name_of(dtype)));
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::sum:
      break;
  }
  return ncclSum;
}

std::size_t count_of(const Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }

/// Whether rank r's range is the r-th of equal, adjoining ones.
bool is_even(std::span<const Shard> ranges) {
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const std::int64_t numel = ranges[0].numel;
    if (ranges[r].numel != numel) return false;
    if (ranges[r].offset != ranges[0].offset + static_cast<std::int64_t>(r) * numel) return false;
  }
  return true;
}

/// Where a rank's part lies among received ones, so that kernels read packs of 16 bytes.
constexpr std::int64_t kPartAlignment = 8;
std::int64_t padded(std::int64_t numel) {
  return (numel + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

class NcclCommunicator final : public Communicator {
 public:
  /// `owned` is the root's: what splits share lives as long as it.
  NcclCommunicator(ncclComm_t comm, Memory& memory, std::unique_ptr<Memory> owned, std::string name,
                   const NcclOptions& options)
      : comm_(comm),
        owned_memory_(std::move(owned)),
        memory_(memory),
        device_(memory.device()),
        name_(std::move(name)),
        options_(options) {
    wait_until_ready(comm, name_, options.timeout_seconds);
    check(ncclCommUserRank(comm, &rank_), "ncclCommUserRank");
    check(ncclCommCount(comm, &size_), "ncclCommCount");
  }
  ~NcclCommunicator() override { destroy(comm_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Device device() const override { return device_; }
  std::string description() const override { return nccl_version(); }
  Memory& memory() override { return memory_; }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  void all_gather(const Tensor& own, const Tensor& out, std::span<const Shard> ranges,
                  Stream& stream) override;
  void reduce_scatter(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                      Stream& stream) override;
  void all_reduce(const Tensor& x, ReduceOp op, Stream& stream) override;
  void broadcast(const Tensor& x, int root, Stream& stream) override;
  void send(const Tensor& x, int to, Stream& stream) override;
  void recv(const Tensor& x, int from, Stream& stream) override;
  void barrier(Stream& stream) override;

 private:
  void settle(ncclResult_t result, const char* call);
  void end_group(const char* what);
  void exchange_and_sum(const Tensor& in, const Tensor& own, std::span<const Shard> ranges,
                        Stream& stream);

  ncclComm_t comm_;
  std::unique_ptr<Memory> owned_memory_;
  Memory& memory_;
  Device device_;
  std::string name_;
  NcclOptions options_;
  int rank_ = 0;
  int size_ = 1;
};

/// Calls on a communicator that was made without blocking may still be on their way when they
/// return.
void NcclCommunicator::settle(ncclResult_t result, const char* call) {
  check(result, call);
  if (result == ncclInProgress) wait_until_ready(comm_, name_, options_.timeout_seconds);
}

void NcclCommunicator::end_group(const char* what) { settle(ncclGroupEnd(), what); }

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key, const std::string& name) {
  const DeviceGuard guard(device_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name.c_str();
  ncclComm_t made = nullptr;
  settle(ncclCommSplit(comm_, color, key, &made, &config), "ncclCommSplit");
  wait_until_ready(comm_, name_, options_.timeout_seconds);
  return std::make_unique<NcclCommunicator>(made, memory_, nullptr, name, options_);
}

void NcclCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                  std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const ncclDataType_t type = nccl_type(out.dtype());
  if (is_even(ranges)) {
    const Tensor all = out.flat({ranges[0].offset, ranges[0].numel * size_});
    settle(ncclAllGather(own.data(), all.data(), count_of(own), type, comm_, cuda(stream)),
           "ncclAllGather");
    return;
  }
  check(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < size_; ++r) {
    const Tensor part = out.flat(ranges[static_cast<std::size_t>(r)]);
    if (part.numel() == 0) continue;
    check(ncclBroadcast(r == rank_ ? own.data() : part.data(), part.data(), count_of(part), type, r,
                        comm_, cuda(stream)),
          "ncclBroadcast");
  }
  end_group("ncclBroadcast of shards");
}

void NcclCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                      std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  if (in.dtype() != own.dtype()) return exchange_and_sum(in, own, ranges, stream);
  const ncclDataType_t type = nccl_type(in.dtype());
  if (is_even(ranges)) {
    const Tensor all = in.flat({ranges[0].offset, ranges[0].numel * size_});
    settle(ncclReduceScatter(all.data(), own.data(), count_of(own), type, ncclSum, comm_,
                             cuda(stream)),
           "ncclReduceScatter");
    return;
  }
  check(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < size_; ++r) {
    const Tensor part = in.flat(ranges[static_cast<std::size_t>(r)]);
    if (part.numel() == 0) continue;
    check(ncclReduce(part.data(), r == rank_ ? own.data() : part.data(), count_of(part), type,
                     ncclSum, r, comm_, cuda(stream)),
          "ncclReduce");
  }
  end_group("ncclReduce of shards");
}

/// 16-bit tensors into f32: every rank sends each owner its part, and owners add in rank order.
void NcclCommunicator::exchange_and_sum(const Tensor& in, const Tensor& own,
                                        std::span<const Shard> ranges, Stream& stream) {
  const ncclDataType_t type = nccl_type(in.dtype());
  const std::int64_t stride = padded(own.numel());
  const std::int64_t bytes = stride * size_of(in.dtype());
  auto* parts = static_cast<std::byte*>(
      cuda_stream(stream).scratch(bytes * size_, "reduce_scatter into f32"));
  check(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < size_; ++r) {
    const Tensor part = in.flat(ranges[static_cast<std::size_t>(r)]);
    if (part.numel() > 0) {
      check(ncclSend(part.data(), count_of(part), type, r, comm_, cuda(stream)), "ncclSend");
    }
    if (own.numel() > 0) {
      check(ncclRecv(parts + r * bytes, count_of(own), type, r, comm_, cuda(stream)), "ncclRecv");
    }
  }
  end_group("exchange of shards");
  sum_in_rank_order(parts, in.dtype(), stride, size_, own.numel(), own.as<float>(), cuda(stream));
}

void NcclCommunicator::all_reduce(const Tensor& x, ReduceOp op, Stream& stream) {
  check_all_reduce(*this, x);
  if (x.numel() == 0) return;
  settle(ncclAllReduce(x.data(), x.data(), count_of(x), nccl_type(x.dtype()), nccl_op(op), comm_,
                       cuda(stream)),
         "ncclAllReduce");
}

void NcclCommunicator::broadcast(const Tensor& x, int root, Stream& stream) {
  check_broadcast(*this, x, root);
  if (x.numel() == 0) return;
  settle(ncclBroadcast(x.data(), x.data(), static_cast<std::size_t>(x.size_bytes()), ncclUint8,
                       root, comm_, cuda(stream)),
         "ncclBroadcast");
}

void NcclCommunicator::send(const Tensor& x, int to, Stream& stream) {
  check_peer(*this, x, to, "send to");
  if (x.numel() == 0) return;
  settle(ncclSend(x.data(), static_cast<std::size_t>(x.size_bytes()), ncclUint8, to, comm_,
                  cuda(stream)),
         "ncclSend");
}

void NcclCommunicator::recv(const Tensor& x, int from, Stream& stream) {
  check_peer(*this, x, from, "receive from");
  if (x.numel() == 0) return;
  settle(ncclRecv(x.data(), static_cast<std::size_t>(x.size_bytes()), ncclUint8, from, comm_,
                  cuda(stream)),
         "ncclRecv");
}

void NcclCommunicator::barrier(Stream& stream) {
  void* word = cuda_stream(stream).scratch(size_of(DType::i32), "barrier");
  settle(ncclAllReduce(word, word, 1, ncclInt32, ncclSum, comm_, cuda(stream)), "ncclAllReduce");
}

/// Rank 0's id, on every rank.
ncclUniqueId share_id(Communicator& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  CpuStream stream("nccl-start");
  control.broadcast({&id, DType::u8, {static_cast<std::int64_t>(sizeof(id))}}, 0, stream);
  stream.synchronize();
  return id;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Device device,
                                                     const std::string& name,
                                                     const NcclOptions& options) {
  const ncclUniqueId id = share_id(control);
  SHERD_CHECK(cudaSetDevice(device.index));  // kernels are launched by this thread from now on
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name.c_str();
  ncclComm_t comm = nullptr;
  check(ncclCommInitRankConfig(&comm, control.size(), id, control.rank(), &config),
        "ncclCommInitRankConfig");
  std::unique_ptr<Memory> memory = make_cuda_memory(device);
  Memory& shared = *memory;
  return std::make_unique<NcclCommunicator>(comm, shared, std::move(memory), name, options);
}

std::string nccl_version() {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  constexpr int kMajor = 10000;
  constexpr int kMinor = 100;
  return fmt::format("NCCL {}.{}.{}", version / kMajor, version % kMajor / kMinor,
                     version % kMinor);
}

std::int64_t nccl_scratch_bytes(std::int64_t shard_numel, int ranks) {
  return padded(shard_numel) * ranks * size_of(DType::bf16);
}

}  // namespace sherd
