#include "collectives/peer_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "collectives/control_exchange.h"
#include "core/cuda/check.h"
#include "core/cuda/device_guard.h"
#include "core/cuda_backend.h"
#include "core/error.h"

namespace sherd {

PeerMemory::PeerMemory(Communicator& control, Device device)
    : control_(control), plain_(make_cuda_memory(device)) {}

PeerMemory::~PeerMemory() {
  for (Segment& segment : segments_) unmap_peers(segment);
}

std::optional<PeerPlace> PeerMemory::find(const void* data) const {
  const auto* address = static_cast<const std::byte*>(data);
  for (const Segment& segment : segments_) {
    const auto* first = static_cast<const std::byte*>(segment.own.data());
    if (address >= first && address < first + segment.own.size_bytes()) {
      return PeerPlace{segment.id, address - first};
    }
  }
  return std::nullopt;
}

std::byte* PeerMemory::address(int r, const PeerPlace& place) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.id == place.segment;
  });
  if (found == segments_.end()) {
    throw CommunicationError(
        fmt::format("rank {} has its tensor in segment {} of the shared memory of GPUs, which this "
                    "rank has given back",
                    r, place.segment));
  }
  return found->bases[static_cast<std::size_t>(r)] + place.offset_bytes;
}

void* PeerMemory::take(std::int64_t bytes) {
  const DeviceGuard guard(device());
  free_returned();
  Segment segment;
  segment.id = next_id_++;
  segment.own = Buffer(*plain_, bytes);
  map_peers(segment);
  segments_.push_back(std::move(segment));
  return segments_.back().own.data();
}

void PeerMemory::give(void* data, std::int64_t /*bytes*/) noexcept {
  for (Segment& segment : segments_) {
    if (segment.own.data() == data) segment.returned = true;
  }
}

void PeerMemory::map_peers(Segment& segment) {
  const auto own = static_cast<std::size_t>(control_.rank());
  segment.bases.assign(static_cast<std::size_t>(control_.size()), nullptr);
  segment.bases[own] = static_cast<std::byte*>(segment.own.data());
  cudaIpcMemHandle_t handle{};
  SHERD_CHECK(cudaIpcGetMemHandle(&handle, segment.own.data()));
  const auto handles = gather_values(control_, handle);
  cudaError_t result = cudaSuccess;
  for (std::size_t r = 0; r < handles.size() && result == cudaSuccess; ++r) {
    if (r == own) continue;
    void* base = nullptr;
    result = cudaIpcOpenMemHandle(&base, handles[r], cudaIpcMemLazyEnablePeerAccess);
    if (result == cudaSuccess) segment.bases[r] = static_cast<std::byte*>(base);
  }
  cudaGetLastError();
  for (const cudaError_t theirs : gather_values(control_, result)) {
    if (theirs == cudaSuccess) continue;
    unmap_peers(segment);
    check(theirs, "cudaIpcOpenMemHandle");
  }
}

void PeerMemory::unmap_peers(Segment& segment) noexcept {
  for (std::size_t r = 0; r < segment.bases.size(); ++r) {
    std::byte*& base = segment.bases[r];
    if (base == nullptr || base == segment.own.data()) continue;
    const cudaError_t result = cudaIpcCloseMemHandle(std::exchange(base, nullptr));
    if (result == cudaSuccess || result == cudaErrorCudartUnloading) continue;
    std::fprintf(stderr, "warning: cudaIpcCloseMemHandle: %s\n", cudaGetErrorString(result));
  }
}

void PeerMemory::free_returned() {
  if (segments_.empty()) return;
  std::vector<std::int32_t> returned;  // the same segments in the same order on all ranks
  for (const Segment& segment : segments_) returned.push_back(segment.returned ? 1 : 0);
  CpuStream stream("peer-memory");
  control_.all_reduce({returned.data(), DType::i32, {static_cast<std::int64_t>(returned.size())}},
                      ReduceOp::min, stream);
  stream.synchronize();
  for (std::size_t i = 0; i < returned.size(); ++i) {
    if (returned[i] != 0) unmap_peers(segments_[i]);
  }
  control_.barrier(stream);
  stream.synchronize();
  for (std::size_t i = returned.size(); i-- > 0;) {
    if (returned[i] != 0) segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace sherd
