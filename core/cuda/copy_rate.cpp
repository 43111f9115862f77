#include <algorithm>
#include <array>

#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/cuda/timing.h"
#include "core/cuda_backend.h"

namespace sherd {
namespace {

/// For this process, from now on.
void let_read(int reader, int peer) {
  const DeviceGuard guard({DeviceKind::cuda, reader});
  const cudaError_t result = cudaDeviceEnablePeerAccess(peer, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  SHERD_CHECK(result);
}

}  // namespace

double cuda_copy_rate(int from, int to) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  constexpr int kTimes = 5;
  constexpr double kBytesPerMs = 1e6;  // of one GB/s
  const Device source{DeviceKind::cuda, from};
  const Device target{DeviceKind::cuda, to};
  if (from != to && cuda_can_access_peer(to, from)) let_read(to, from);
  const auto source_memory = make_cuda_memory(source);
  const auto target_memory = make_cuda_memory(target);
  const Buffer a(*source_memory, kBytes);
  const Buffer b(*target_memory, kBytes);
  const DeviceGuard guard(target);
  CudaStream stream(target, "copies");
  std::array<double, kTimes> ms{};
  for (double& one : ms) {
    one = device_ms(stream, [&] {
      SHERD_CHECK(cudaMemcpyPeerAsync(b.data(), to, a.data(), from, kBytes, stream.raw()));
    });
  }
  std::nth_element(ms.begin(), ms.begin() + kTimes / 2, ms.end());
  return static_cast<double>(kBytes) / ms[kTimes / 2] / kBytesPerMs;
}

}  // namespace sherd
