#include "collectives/gpu_communicator.h"

#include <utility>

#include "collectives/arguments.h"
#include "collectives/control_exchange.h"
#include "collectives/shared_gpus.h"
#include "collectives/transport_times.h"
#include "core/error.h"

namespace sherd {
namespace {

bool is_one_host(Communicator& control) {
  const std::vector<HostId> all = gather_values(control, host_id());
  for (const HostId& id : all) {
    if (id != all[0]) return false;
  }
  return true;
}

std::int64_t bytes_of(DType dtype, std::span<const Shard> ranges) {
  std::int64_t numel = 0;
  for (const Shard& range : ranges) numel += range.numel;
  return numel * size_of(dtype);
}

}  // namespace

GpuCommunicator::GpuCommunicator(std::unique_ptr<NcclCommunicator> nccl, GpuTransport transport)
    : nccl_(std::move(nccl)) {
  if (transport == GpuTransport::nccl) {
    why_no_peers_ = "as asked for";
  } else if (size() == 1) {
    why_no_peers_ = "one rank";
  } else if (size() > kMostPeers) {
    why_no_peers_ = fmt::format("more than {} ranks", kMostPeers);
  } else if (!is_one_host(hosts())) {
    why_no_peers_ = "several hosts";
  } else {
    open_peers(transport);
  }
  require(peers_ != nullptr || transport != GpuTransport::peer || size() == 1,
          "communicator '{}' can't copy between peers: {}", nccl_->member().name, why_no_peers_);
}

void GpuCommunicator::open_peers(GpuTransport transport) {
  try {
    owned_peers_ = std::make_unique<PeerRoot>(hosts(), device());
    group_ = std::make_unique<PeerGroup>(*owned_peers_, hosts(), *nccl_);
  } catch (const ApiError& error) {  // on all ranks alike
    owned_peers_ = nullptr;
    why_no_peers_ = error.what();
    return;
  }
  peers_ = owned_peers_.get();
  thresholds_ = {0, 0};
  if (transport == GpuTransport::peer) return;
  times_ = time_transports(hosts(), *nccl_);
  thresholds_ = find_thresholds(times_);
}

GpuCommunicator::GpuCommunicator(GpuCommunicator& whole, std::unique_ptr<NcclCommunicator> nccl)
    : nccl_(std::move(nccl)),
      peers_(whole.peers_),
      why_no_peers_(whole.why_no_peers_),
      thresholds_(whole.thresholds_) {
  if (peers_ != nullptr && size() > 1) {
    group_ = std::make_unique<PeerGroup>(*peers_, hosts(), *nccl_);
  }
}

std::string GpuCommunicator::description() const {
  if (peers_ == nullptr) {
    return fmt::format("{}, no peer copies: {}", nccl_->description(), why_no_peers_);
  }
  return fmt::format("{}, peer copies: {}", nccl_->description(), describe(thresholds_));
}

Memory& GpuCommunicator::memory() {
  return peers_ != nullptr ? static_cast<Memory&>(peers_->memory) : nccl_->memory();
}

std::unique_ptr<Communicator> GpuCommunicator::split(int color, int key, const std::string& name) {
  return std::unique_ptr<Communicator>(new GpuCommunicator(*this, nccl_->part(color, key, name)));
}

void GpuCommunicator::all_gather(const Tensor& own, const Tensor& out,
                                 std::span<const Shard> ranges, Stream& stream) {
  check_all_gather(*this, own, out, ranges);
  const bool large = bytes_of(out.dtype(), ranges) >= thresholds_.gather_bytes;
  if (group_ != nullptr && large && group_->all_gather(own, out, ranges, stream)) return;
  nccl_->all_gather(own, out, ranges, stream);
}

void GpuCommunicator::reduce_scatter(const Tensor& in, const Tensor& own,
                                     std::span<const Shard> ranges, Stream& stream) {
  check_reduce_scatter(*this, in, own, ranges);
  const bool large = bytes_of(in.dtype(), ranges) >= thresholds_.reduce_bytes;
  if (group_ != nullptr && large && group_->reduce_scatter(in, own, ranges, stream)) return;
  nccl_->reduce_scatter(in, own, ranges, stream);
}

std::unique_ptr<Communicator> make_gpu_communicator(Communicator& control, Device device,
                                                    const std::string& name,
                                                    const GpuOptions& options) {
  return std::make_unique<GpuCommunicator>(start_nccl(control, device, name, options.nccl),
                                           options.transport);
}

std::vector<TransportTime> measured_transports(const Communicator& communicator) {
  const auto* gpus = dynamic_cast<const GpuCommunicator*>(&communicator);
  return gpus == nullptr ? std::vector<TransportTime>() : gpus->times();
}

}  // namespace sherd
