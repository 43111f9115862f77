#include "apps/device_choice.h"

#include <algorithm>

#include "apps/agreement.h"
#include "apps/job.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {

Device choose_device(DeviceChoice wanted, const MpiSession& session, Communicator& world) {
  const int gpus = cuda_device_count();
  if (wanted == DeviceChoice::automatic) {
    const std::vector<std::string> lacks =
        gather_texts(world, gpus < session.local_size() ? "lacks one" : "");
    const bool all =
        std::all_of(lacks.begin(), lacks.end(), [](const auto& l) { return l.empty(); });
    wanted = all ? DeviceChoice::cuda : DeviceChoice::cpu;
  }
  if (wanted == DeviceChoice::cpu) return {};
  require(gpus > 0, "device is \"cuda\", but there is no GPU: {}", cuda_absence());
  require(
      session.local_rank() < gpus,
      "rank {} is number {} of {} on its machine, which has {} GPUs; each rank needs one of its "
      "own: start at most {} ranks there",
      session.rank(), session.local_rank() + 1, session.local_size(), gpus, gpus);
  return {DeviceKind::cuda, session.local_rank()};
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
