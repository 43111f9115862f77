#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/nccl.h"

namespace sherd {

/// What moves the bytes of gathers and reductions between the GPUs of a host.
enum class GpuTransport : unsigned char { automatic, nccl, peer };

struct GpuOptions {
  NcclOptions nccl = {};
  /// automatic: by peer copies where the ranks can read each other's memory and a measurement at
  /// the start found them faster; peer: by peer copies at every size, ArgumentError if that can't
  /// be.
  GpuTransport transport = GpuTransport::automatic;
};

/// A time of both transports, the slowest rank's, for a tensor of so many bytes in all.
struct TransportTime {
  bool gather = true;  ///< false: a reduce-scatter of bf16 into f32
  std::int64_t bytes = 0;
  double nccl_ms = 0;
  double peer_ms = 0;
};

/// As make_nccl_communicator, whose contract holds, with all-gathers and reduce-scatters of the
/// GPUs of one host by reading peers' memory where that is faster: by the copy engines, and sums
/// by one kernel, in rank order for every dtype. What is read must lie in `memory()`, on every
/// rank; else NCCL moves it. Reductions of 16-bit tensors need nccl_scratch_bytes on their stream.
/// The hosts tell each other where tensors are as they enqueue, so all ranks enqueue the operations
/// of a root and its splits in one order. On the GPUs ranks wait for each other by flags.
std::unique_ptr<Communicator> make_gpu_communicator(Communicator& control, Device device,
                                                    const std::string& name,
                                                    const GpuOptions& options = {});

/// What the start of a communicator from make_gpu_communicator measured: empty where there was
/// nothing to choose.
std::vector<TransportTime> measured_transports(const Communicator& communicator);

/// What bounds gathers: GB/s of each rank's copy from the GPU of the next, all at once, of the
/// slowest. Collective over `control`, the hosts. Throws ApiError on all ranks when they can't read
/// each other's memory.
double peer_copy_gb_per_s(Communicator& control, Device device, std::int64_t bytes);

}  // namespace sherd
