#include "collectives/nccl_communicator.h"

#include <cstddef>
#include <exception>
#include <utility>

#include "collectives/arguments.h"
#include "collectives/nccl_check.h"
#include "collectives/rank_sum.h"
#include "core/counted.h"
#include "core/cuda/cuda_stream.h"
#include "core/cuda/device_guard.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
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
    case DType::u8:
    case DType::i16:
      break;
  }
  throw ArgumentError(fmt::format("NCCL reduces no {} tensors", name_of(dtype)));
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
std::size_t bytes_of(const Tensor& tensor) { return static_cast<std::size_t>(tensor.size_bytes()); }

/// Whether rank r's range is the r-th of equal, adjoining ones.
bool is_even(std::span<const Shard> ranges) {
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const std::int64_t numel = ranges[0].numel;
    if (ranges[r].numel != numel) return false;
    if (ranges[r].offset != ranges[0].offset + static_cast<std::int64_t>(r) * numel) return false;
  }
  return true;
}

/// A communicator is made without blocking, so that a rank that never comes is noticed.
ncclConfig_t config_for(const std::string& name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name.c_str();
  return config;
}

ncclComm_t start_communicator(Communicator& control, Device device, const ncclUniqueId& id,
                              const std::string& name) {
  const DeviceGuard guard(device);
  ncclConfig_t config = config_for(name);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRankConfig(&comm, control.size(), id, control.rank(), &config),
        "ncclCommInitRankConfig");
  return comm;
}

}  // namespace

NcclCommunicator::NcclCommunicator(Communicator& control, Device device, const ncclUniqueId& id,
                                   const std::string& name, const NcclOptions& options)
    : control_(control),
      owned_memory_(make_cuda_memory(device)),
      owned_watch_(std::make_unique<NcclWatch>(control, device, options)),
      memory_(*owned_memory_),
      watch_(*owned_watch_),
      member_(watch_.add(start_communicator(control, device, id, name), name)) {
  start();
}

NcclCommunicator::NcclCommunicator(NcclCommunicator& root, ncclComm_t comm,
                                   std::unique_ptr<Communicator> control, const std::string& name)
    : owned_control_(std::move(control)),
      control_(*owned_control_),
      memory_(root.memory_),
      watch_(root.watch_),
      member_(watch_.add(comm, name)) {
  start();
}

void NcclCommunicator::start() {
  try {
    const NcclWatch::Turn turn(watch_, member_);
    watch_.wait_until_ready(member_, "its start");
    check(ncclCommUserRank(member_.comm, &rank_), "ncclCommUserRank");
    check(ncclCommCount(member_.comm, &size_), "ncclCommCount");
  } catch (...) {
    watch_.remove(member_);
    throw;
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (std::uncaught_exceptions() > exceptions_) watch_.abandon("an exception ended its work");
  watch_.remove(member_);
}

std::string NcclCommunicator::description() const {
  return fmt::format("{}, '{}', {}", nccl_version(), member_.name, counted(size_, "GPU"));
}

template <class F>
void NcclCommunicator::run(const Posting& posting, Stream& stream, F work) {
  CudaStream& lane = cuda_stream(stream);
  {
    const NcclWatch::Turn turn(watch_, member_);
    work(member_.comm, lane.raw());
  }
  watch_.enqueued(member_, posting, lane);
}

/// Calls on a communicator that was made without blocking may still be on their way when they
/// return.
void NcclCommunicator::settle(ncclResult_t result, const char* call) {
  check(result, call);
  if (result == ncclInProgress) watch_.wait_until_ready(member_, call);
}

std::unique_ptr<NcclCommunicator> NcclCommunicator::part(int color, int key,
                                                         const std::string& name) {
  require(color >= 0, "the color of '{}' can't be negative, got {}", name, color);
  std::unique_ptr<Communicator> control = control_.split(color, key, name);
  const DeviceGuard guard(device());
  ncclConfig_t config = config_for(name);
  ncclComm_t made = nullptr;
  {
    const NcclWatch::Turn turn(watch_, member_);
    settle(ncclCommSplit(member_.comm, color, key, &made, &config), "ncclCommSplit");
    watch_.wait_until_ready(member_, "ncclCommSplit");
  }
  return std::unique_ptr<NcclCommunicator>(
      new NcclCommunicator(*this, made, std::move(control), name));
}

/// Bytes, since NCCL knows no 16-bit integers and gathering need not know any type.
void NcclCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                  std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const Posting posting = make_posting(Operation::all_gather, out.dtype(), ranges);
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    if (is_even(ranges)) {
      const Tensor all = out.flat({ranges[0].offset, ranges[0].numel * size_});
      settle(ncclAllGather(own.data(), all.data(), bytes_of(own), ncclUint8, comm, lane),
             "ncclAllGather");
      return;
    }
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) {
      const Tensor part = out.flat(ranges[static_cast<std::size_t>(r)]);
      if (part.numel() == 0) continue;
      check(ncclBroadcast(r == rank_ ? own.data() : part.data(), part.data(), bytes_of(part),
                          ncclUint8, r, comm, lane),
            "ncclBroadcast");
    }
    settle(ncclGroupEnd(), "ncclBroadcast of shards");
  });
}

void NcclCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                      std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  if (in.dtype() != own.dtype()) return exchange_and_sum(in, own, ranges, stream);
  if (!is_even(ranges)) return reduce_to_owners(in, own, ranges, stream);
  const Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    const Tensor all = in.flat({ranges[0].offset, ranges[0].numel * size_});
    settle(ncclReduceScatter(all.data(), own.data(), count_of(own), nccl_type(in.dtype()), ncclSum,
                             comm, lane),
           "ncclReduceScatter");
  });
}

void NcclCommunicator::reduce_to_owners(const Tensor& in, const Tensor& own,
                                        std::span<const Shard> ranges, Stream& stream) {
  const Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) {
      const Tensor part = in.flat(ranges[static_cast<std::size_t>(r)]);
      if (part.numel() == 0) continue;
      check(ncclReduce(part.data(), r == rank_ ? own.data() : part.data(), count_of(part),
                       nccl_type(in.dtype()), ncclSum, r, comm, lane),
            "ncclReduce");
    }
    settle(ncclGroupEnd(), "ncclReduce of shards");
  });
}

/// 16-bit tensors into f32: every rank sends each owner its part, and owners add in rank order.
void NcclCommunicator::exchange_and_sum(const Tensor& in, const Tensor& own,
                                        std::span<const Shard> ranges, Stream& stream) {
  const std::int64_t stride = part_stride(own.numel());
  const std::int64_t bytes = stride * size_of(in.dtype());
  auto* parts = static_cast<std::byte*>(
      cuda_stream(stream).scratch(bytes * size_, "reduce_scatter into f32"));
  const Posting posting = make_posting(Operation::reduce_scatter, in.dtype(), ranges);
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < size_; ++r) {
      const Tensor part = in.flat(ranges[static_cast<std::size_t>(r)]);
      if (part.numel() > 0) {
        check(ncclSend(part.data(), bytes_of(part), ncclUint8, r, comm, lane), "ncclSend");
      }
      if (own.numel() > 0) {
        const auto count = static_cast<std::size_t>(own.numel() * size_of(in.dtype()));
        check(ncclRecv(parts + r * bytes, count, ncclUint8, r, comm, lane), "ncclRecv");
      }
    }
    settle(ncclGroupEnd(), "exchange of shards");
    sum_in_rank_order(parts, in.dtype(), stride, size_, own, lane);
  });
}

void NcclCommunicator::all_reduce(const Tensor& x, ReduceOp op, Stream& stream) {
  check_all_reduce(*this, x);
  if (x.numel() == 0) return;
  Posting posting = make_posting(Operation::all_reduce, x);
  posting.reduce = op;
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    settle(ncclAllReduce(x.data(), x.data(), count_of(x), nccl_type(x.dtype()), nccl_op(op), comm,
                         lane),
           "ncclAllReduce");
  });
}

void NcclCommunicator::broadcast(const Tensor& x, int root, Stream& stream) {
  check_broadcast(*this, x, root);
  if (x.numel() == 0) return;
  Posting posting = make_posting(Operation::broadcast, x);
  posting.peer = root;
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    settle(ncclBroadcast(x.data(), x.data(), bytes_of(x), ncclUint8, root, comm, lane),
           "ncclBroadcast");
  });
}

void NcclCommunicator::send(const Tensor& x, int to, Stream& stream) {
  check_peer(*this, x, to, "send to");
  if (x.numel() == 0) return;
  Posting posting = make_posting(Operation::send, x);
  posting.peer = to;
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    settle(ncclSend(x.data(), bytes_of(x), ncclUint8, to, comm, lane), "ncclSend");
  });
}

void NcclCommunicator::recv(const Tensor& x, int from, Stream& stream) {
  check_peer(*this, x, from, "receive from");
  if (x.numel() == 0) return;
  Posting posting = make_posting(Operation::recv, x);
  posting.peer = from;
  run(posting, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    settle(ncclRecv(x.data(), bytes_of(x), ncclUint8, from, comm, lane), "ncclRecv");
  });
}

void NcclCommunicator::barrier(Stream& stream) {
  void* word = cuda_stream(stream).scratch(size_of(DType::i32), "barrier");
  run({}, stream, [&](ncclComm_t comm, cudaStream_t lane) {
    settle(ncclAllReduce(word, word, 1, ncclInt32, ncclSum, comm, lane), "ncclAllReduce");
  });
}

}  // namespace sherd
