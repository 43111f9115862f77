#include "apps/device_choice.h"

#include "apps/agreement.h"
#include "apps/job.h"
#include "collectives/shared_gpus.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {
namespace {

/// In blocks, where a rank sees fewer GPUs than its machine has ranks.
Device own_gpu(int gpus, const MpiSession& session) {
  return {DeviceKind::cuda, session.local_rank() / ranks_per_gpu(session.local_size(), gpus)};
}

}  // namespace

Device choose_device(DeviceChoice wanted, bool share_gpus, const MpiSession& session,
                     Communicator& world) {
  if (wanted == DeviceChoice::cpu) return {};
  const bool automatic = wanted == DeviceChoice::automatic;
  const int gpus = cuda_device_count();
  const std::vector<std::string> absent = gather_texts(world, gpus > 0 ? "" : cuda_absence());
  for (std::size_t r = 0; r < absent.size(); ++r) {
    if (absent[r].empty()) continue;
    if (automatic) return {};
    throw ArgumentError(
        fmt::format("device is \"cuda\", but there is no GPU where rank {} is: {}", r, absent[r]));
  }
  const Device device = own_gpu(gpus, session);
  const CudaDeviceInfo info = on_all_ranks(world, [&] { return cuda_device_info(device.index); });
  const std::optional<int> sharer = first_sharer(earlier_ranks_at(world, info.pci_bus_id));
  if (share_gpus || !sharer) return device;
  if (automatic) return {};
  throw ArgumentError(
      fmt::format("rank {} has no GPU of its own: start no more ranks on a machine than it has "
                  "GPUs, or let them share with \"share_gpus\": true",
                  *sharer));
}

Device first_device(DeviceChoice wanted) {
  if (wanted == DeviceChoice::cpu) return {};
  const bool any = cuda_device_count() > 0;
  require(any || wanted == DeviceChoice::automatic,
          "device cuda was asked for, but there is no GPU: {}", cuda_absence());
  return any ? Device{DeviceKind::cuda, 0} : Device{};
}

GpuOptions gpu_options(MpiSession& session) {
  GpuOptions options;
  options.nccl.share_gpus = true;  // choose_device has refused where nobody asked for it
  options.nccl.last_resort = [&session](const std::string& reason) {
    end_job(CommunicationError(reason), session);
  };
  return options;
}

std::unique_ptr<Communicator> device_communicator(Device device, Communicator& world,
                                                  MpiSession& session) {
  if (device.is_cpu()) return nullptr;
  return make_gpu_communicator(world, device, "train", gpu_options(session));
}

}  // namespace sherd
