#include "kernels/device_code.h"

#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {
namespace {

__global__ void any_kernel() {}

}  // namespace

std::string cuda_kernels_absence(int device) {
  constexpr int kLeastCapability = 80;
  const CudaDeviceInfo info = cuda_device_info(device);
  const std::string what = fmt::format("{} has compute capability {}.{}", info.name,
                                       info.compute_capability / 10, info.compute_capability % 10);
  if (info.compute_capability < kLeastCapability) return what + ", and 8.0 is the least";
  const DeviceGuard guard({DeviceKind::cuda, device});
  cudaFuncAttributes code{};
  const cudaError_t result = cudaFuncGetAttributes(&code, any_kernel);
  if (result == cudaSuccess) return "";
  cudaGetLastError();
  return fmt::format(
      "{}, for which this build has no kernels ({}): configure it with "
      "-DCMAKE_CUDA_ARCHITECTURES={}",
      what, cudaGetErrorString(result), info.compute_capability);
}

}  // namespace sherd
