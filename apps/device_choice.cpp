#include "apps/device_choice.h"

#include "collectives/nccl.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {

Device choose_device(DeviceChoice wanted, const MpiSession& session) {
  if (wanted != DeviceChoice::cuda) return {};
  const int gpus = cuda_device_count();
  require(gpus > 0, "device is \"cuda\", but there is no GPU: {}", cuda_absence());
  require(
      session.local_rank() < gpus,
      "rank {} is number {} of {} on its machine, which has {} GPUs; each rank needs one of its "
      "own: start at most {} ranks there",
      session.rank(), session.local_rank() + 1, session.local_size(), gpus, gpus);
  return {DeviceKind::cuda, session.local_rank()};
}

std::unique_ptr<Communicator> device_communicator(Device device, Communicator& world) {
  if (device.is_cpu()) return nullptr;
  return make_nccl_communicator(world, device, "train");
}

}  // namespace sherd
