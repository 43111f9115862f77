#include "apps/device_choice.h"

#include <cstdio>
#include <map>

#include "apps/agreement.h"
#include "apps/job.h"
#include "apps/quantity.h"
#include "collectives/shared_gpus.h"
#include "core/cuda_backend.h"
#include "core/error.h"
#include "kernels/device_code.h"

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
  const Device device = gpus > 0 ? own_gpu(gpus, session) : Device{};
  const std::string mine = on_all_ranks(
      world, [&] { return gpus > 0 ? cuda_kernels_absence(device.index) : cuda_absence(); });
  const std::vector<std::string> absent = gather_texts(world, mine);
  for (std::size_t r = 0; r < absent.size(); ++r) {
    if (absent[r].empty()) continue;
    const std::string reason =
        fmt::format("there is no GPU to run on where rank {} is: {}", r, absent[r]);
    require(automatic, "device is \"cuda\", but {}", reason);
    if (gpus > 0 && world.rank() == 0) std::fprintf(stderr, "note: %s\n", reason.c_str());
    return {};
  }
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
  const std::string absence = cuda_device_count() > 0 ? cuda_kernels_absence(0) : cuda_absence();
  require(absence.empty() || wanted == DeviceChoice::automatic,
          "device cuda was asked for, but there is no GPU to run on: {}", absence);
  return absence.empty() ? Device{DeviceKind::cuda, 0} : Device{};
}

/// Libraries choose algorithms by model, so it decides bits, and no choice of ours could prevent
/// it.
std::string exact_on_models(const std::vector<std::string>& models) {
  std::map<std::string, std::vector<int>> ranks_of;
  for (std::size_t r = 0; r < models.size(); ++r) {
    ranks_of[models[r]].push_back(static_cast<int>(r));
  }
  if (ranks_of.size() < 2) return "";
  std::vector<std::string> parts;
  parts.reserve(ranks_of.size());
  for (const auto& [model, ranks] : ranks_of) {
    parts.push_back(fmt::format("{} of {}", model, ranks_text(ranks)));
  }
  return fmt::format(
      "reduction exact: products on GPUs of different models ({}) have bits of their own, so the "
      "run's bits depend on which rank computes what; they are the same at every world size on "
      "GPUs of one model",
      fmt::join(parts, ", "));
}

std::string exact_on_devices(Device device, Communicator& world) {
  if (device.is_cpu()) return "";
  const auto name = [&] { return cuda_device_info(device.index).name; };
  return exact_on_models(gather_texts(world, on_all_ranks(world, name)));
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
                                                  MpiSession& session, double timeout_seconds) {
  if (device.is_cpu()) return nullptr;
  GpuOptions options = gpu_options(session);
  options.nccl.timeout_seconds = timeout_seconds;
  return make_gpu_communicator(world, device, "train", options);
}

}  // namespace sherd
