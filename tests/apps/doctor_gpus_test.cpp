#include "apps/doctor_gpus.h"

#include <catch2/catch_test_macros.hpp>

#include "apps/core_list.h"
#include "apps/device_memory.h"

using namespace sherd;

TEST_CASE("Links between GPUs are a table of who reads whom") {
  CHECK(peer_table({}).empty());
  CHECK(peer_table({{""}}).empty());
  CHECK(peer_table({{"", link_text(391.6, true)}, {link_text(20.7, false), ""}}) ==
        "reads                       GPU 0     GPU 1\n"
        "GPU 0                           -  392 GB/s\n"
        "GPU 1  21 GB/s by way of the host         -\n");
}

TEST_CASE("Lists of cores are read and written as the kernel writes them") {
  CHECK(core_list_text({}) == "none");
  CHECK(core_list_text({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(parse_core_list("0-3,8,10-11") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(parse_core_list("").empty());
  CHECK(parse_core_list("5,x") == std::vector<int>{5});
}

TEST_CASE("A device that the kernel doesn't know is near no core") {
  CHECK(cores_near("FFFF:FF:1F.7").empty());
}

TEST_CASE("Only a rank that may run on no core near its GPU gets advice") {
  CHECK(binding_advice(0, 0, {0, 1}, {1, 2}).empty());
  CHECK(binding_advice(0, 0, {0, 1}, {}).empty());
  const std::string advice = binding_advice(3, 1, {0, 1}, {8, 9});
  CHECK(advice.find("rank 3") != std::string::npos);
  CHECK(advice.find("GPU 1 (8-9)") != std::string::npos);
}

TEST_CASE("The memory of a device is told as planned and beside the plan") {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  CudaDeviceInfo device;
  device.total_bytes = 80 * kGiB;
  device.free_bytes = 70 * kGiB;
  const std::string text = device_memory_text(device, 8 * kGiB);
  CHECK(text.starts_with("10.0 GiB of 80.0 GiB in use: 8.0 GiB planned; 2.0 GiB beside it"));
}
