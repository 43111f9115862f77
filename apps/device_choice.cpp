#include "apps/device_choice.h"

#include "collectives/nccl.h"
#include "core/cpu_stream.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {

Device choose_device(DeviceChoice wanted, const MpiSession& session, Communicator& world) {
  if (wanted == DeviceChoice::cpu) return {};
  const int gpus = cuda_device_count();
  const bool own = session.local_rank() < gpus;
  if (wanted == DeviceChoice::cuda) {
    require(gpus > 0, "device is \"cuda\", but there is no GPU: {}", cuda_absence());
    require(own,
            "rank {} is number {} of {} on its machine, which has {} GPUs; each rank needs one of "
            "its own: start at most {} ranks there",
            session.rank(), session.local_rank() + 1, session.local_size(), gpus, gpus);
    return {DeviceKind::cuda, session.local_rank()};
  }
  std::int64_t all_have_one = own ? 1 : 0;
  CpuStream stream("device-choice");
  world.all_reduce({&all_have_one, DType::i64, {1}}, ReduceOp::min, stream);
  stream.synchronize();
  return all_have_one == 1 ? Device{DeviceKind::cuda, session.local_rank()} : Device{};
}

std::unique_ptr<Communicator> device_communicator(Device device, Communicator& world) {
  if (device.is_cpu()) return nullptr;
  return make_nccl_communicator(world, device, "train");
}

}  // namespace sherd
