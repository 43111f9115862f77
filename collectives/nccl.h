#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collectives/communicator.h"
#include "core/device.h"

namespace sherd {

struct NcclOptions {
  /// For a rank that does not come to the start, and for operations that do not end.
  double timeout_seconds = 300;
  /// Whether ranks may use the same GPU: slow, for trying things out with fewer GPUs than ranks.
  bool share_gpus = false;
  /// Called on another thread when the communicators have failed and the host has not noticed for
  /// ten seconds, held up in some call: what ends the job then. Gets the reason.
  std::function<void(const std::string&)> last_resort = {};
};

/// A communicator over GPUs through NCCL, one rank a device; `control` is a host communicator of
/// the same ranks in the same order, which outlives it: its operations are used here, to start,
/// and later it is asked whether a rank has failed. Collective. No operation waits for ever: when a
/// peer fails or nothing ends within the timeout, the root and its splits are aborted, and waits
/// for streams they were used on throw CommunicationError with what was pending. Streams are CUDA
/// streams of `device`. Float sums of 16-bit tensors into f32 are made in rank order from what each
/// rank sent; other float sums are NCCL's, in an order of its own that depends on size and ranks.
/// `device` stays current for the calling thread. Throws ArgumentError in a build without CUDA and
/// for ranks on one GPU that were not said to share it, CommunicationError when ranks don't come
/// within the timeout.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Device device,
                                                     const std::string& name,
                                                     const NcclOptions& options = {});

/// "NCCL 2.28.9", or "none".
std::string nccl_version();

/// Scratch that a reduction of 16-bit tensors into an f32 shard of `shard_numel` needs on its
/// stream.
std::int64_t nccl_scratch_bytes(std::int64_t shard_numel, int ranks);

}  // namespace sherd
