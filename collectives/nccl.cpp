#include "collectives/nccl.h"

#include <nccl.h>

#include "collectives/nccl_check.h"
#include "collectives/nccl_communicator.h"
#include "collectives/shared_gpus.h"
#include "core/cpu_stream.h"
#include "core/cuda/check.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {
namespace {

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

std::unique_ptr<NcclCommunicator> start_nccl(Communicator& control, Device device,
                                             const std::string& name, const NcclOptions& options) {
  const std::string gpu = cuda_device_info(device.index).pci_bus_id;
  settle_shared_gpus(earlier_ranks_at(control, gpu), control.rank(), options.share_gpus);
  const ncclUniqueId id = share_id(control);
  SHERD_CHECK(cudaSetDevice(device.index));  // kernels are launched by this thread from now on
  return std::make_unique<NcclCommunicator>(control, device, id, name, options);
}

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& control, Device device,
                                                     const std::string& name,
                                                     const NcclOptions& options) {
  return start_nccl(control, device, name, options);
}

std::string nccl_version() {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  constexpr int kMajor = 10000;
  constexpr int kMinor = 100;
  return fmt::format("NCCL {}.{}.{}", version / kMajor, version % kMajor / kMinor,
                     version % kMinor);
}

}  // namespace sherd
