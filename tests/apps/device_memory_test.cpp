#include "apps/device_memory.h"

#include <catch2/catch_test_macros.hpp>

#include "core/cuda_backend.h"
#include "core/error.h"

using namespace sherd;

namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

}  // namespace

TEST_CASE("of a GPU's free memory, a part is left to libraries, and to communicators if any") {
  CudaDeviceInfo device;
  device.name = "a card";
  device.total_bytes = 80 * kGib;
  device.free_bytes = 79 * kGib;
  const UsableMemory alone = usable_memory(device, 1);
  const UsableMemory together = usable_memory(device, 2);
  CHECK(alone.bytes() == device.free_bytes - alone.reserve_bytes);
  CHECK(alone.reserve_bytes >= kGib);
  CHECK(together.bytes() < alone.bytes());
  CHECK(alone.source.find("79.0 GiB of 80.0 GiB free on a card") != std::string::npos);
  CHECK(alone.source.find("NCCL") == std::string::npos);
  CHECK(together.source.find("NCCL") != std::string::npos);
}

TEST_CASE("a host's memory is shared by its ranks") {
  const UsableMemory alone = usable_host_memory(8 * kGib, 1);
  const UsableMemory shared = usable_host_memory(8 * kGib, 4);
  CHECK(alone.free_bytes == 8 * kGib);
  CHECK(shared.free_bytes == 2 * kGib);
  CHECK(alone.bytes() < 8 * kGib);
  CHECK(alone.bytes() > 7 * kGib);
  CHECK(usable_memory_here(DeviceKind::cpu, 2).bytes() > 0);
}

TEST_CASE("the memory of a GPU that is not there is not made up") {
  if (cuda_device_count() > 0) SKIP("there is one");
  CHECK_THROWS_AS(usable_memory_here(DeviceKind::cuda, 1), ArgumentError);
}
