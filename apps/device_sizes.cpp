#include "apps/device_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/device_memory.h"
#include "apps/quantity.h"
#include "core/error.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

std::int64_t reserve_of(DeviceKind kind, int world) {
  return kind == DeviceKind::cuda ? gpu_reserve(world) : 0;
}

}  // namespace

DeviceMemory::DeviceMemory(std::vector<std::int64_t> sizes, int world, DeviceKind kind)
    : sizes_(std::move(sizes)),
      world_(world),
      kind_(kind),
      reserve_bytes_(reserve_of(kind, world)) {
  require(sizes_.size() == 1 || static_cast<int>(sizes_.size()) == world,
          "--device-memory: expected one size, or {} (one per rank), got {}", world, sizes_.size());
}

DeviceMemory DeviceMemory::leaving(std::vector<std::int64_t> bytes, int world, DeviceKind kind) {
  for (std::int64_t& size : bytes) size += reserve_of(kind, world);
  return {std::move(bytes), world, kind};
}

std::int64_t DeviceMemory::size_of_rank(int rank) const {
  return sizes_.size() == 1 ? sizes_.front() : sizes_[static_cast<std::size_t>(rank)];
}

std::int64_t DeviceMemory::of_rank(int rank) const {
  return std::max<std::int64_t>(0, size_of_rank(rank) - reserve_bytes_);
}

DeviceMemory DeviceMemory::parts_of_machines(std::vector<std::int64_t> parts) {
  const auto world = static_cast<int>(parts.size());
  DeviceMemory memory(std::move(parts), world);
  memory.grows_with_ranks_ = false;
  return memory;
}

std::vector<std::int64_t> DeviceMemory::per_rank() const {
  std::vector<std::int64_t> bytes;
  bytes.reserve(static_cast<std::size_t>(world_));
  for (int rank = 0; rank < world_; ++rank) bytes.push_back(of_rank(rank));
  return bytes;
}

std::vector<std::int64_t> DeviceMemory::size_per_rank() const {
  return memory_per_rank(sizes_, world_);
}

std::int64_t DeviceMemory::lacking_bytes(const RunPlan& plan) const {
  std::int64_t lacking = 0;
  for (const RankNeeds& needs : plan.needs) {
    for (const int rank : needs.ranks) {
      lacking += std::max<std::int64_t>(0, needs.peak_bytes - of_rank(rank));
    }
  }
  return lacking;
}

int DeviceMemory::shortest_rank(const RunPlan& plan) const {
  int shortest = 0;
  std::int64_t most = INT64_MIN;
  for (const RankNeeds& needs : plan.needs) {
    for (const int rank : needs.ranks) {
      const std::int64_t lacking = needs.peak_bytes - of_rank(rank);
      if (lacking <= most) continue;
      most = lacking;
      shortest = rank;
    }
  }
  return shortest;
}

bool DeviceMemory::is_same_for_all() const {
  return std::all_of(sizes_.begin(), sizes_.end(),
                     [this](std::int64_t size) { return size == sizes_.front(); });
}

DeviceMemory DeviceMemory::for_world(int world) const { return {{sizes_.front()}, world, kind_}; }

std::string of_rank_text(const DeviceMemory& memory, int rank) {
  if (memory.reserve_bytes() == 0) return bytes_text(memory.of_rank(rank));
  return fmt::format("{} ({} less a reserve of {})", bytes_text(memory.of_rank(rank)),
                     bytes_text(memory.size_of_rank(rank)), bytes_text(memory.reserve_bytes()));
}

std::string reserve_line(const DeviceMemory& memory) {
  if (memory.reserve_bytes() == 0) return "";
  return fmt::format(
      "reserve {} of each card for the driver's context, kernels, cuBLASLt, cuDNN{}\n",
      bytes_text(memory.reserve_bytes()),
      memory.world() > 1 ? " and NCCL" : ", where a rank is alone");
}

}  // namespace sherd
