#include "apps/plan_target.h"

#include <catch2/catch_test_macros.hpp>

using namespace sherd;

TEST_CASE("a plan is for the device that the run would take") {
  const auto device = [](DeviceChoice wanted, int ranks, int gpus) {
    return find_target(wanted, ranks, gpus).device;
  };
  CHECK(device(DeviceChoice::automatic, 2, 0) == DeviceChoice::cpu);
  CHECK(device(DeviceChoice::automatic, 2, 1) == DeviceChoice::cpu);
  CHECK(device(DeviceChoice::automatic, 2, 2) == DeviceChoice::cuda);
  CHECK(device(DeviceChoice::automatic, 2, 8) == DeviceChoice::cuda);
  CHECK(device(DeviceChoice::cuda, 64, 0) == DeviceChoice::cuda);
  CHECK(device(DeviceChoice::cpu, 1, 8) == DeviceChoice::cpu);
}

TEST_CASE("what a plan is for is told, with the reason") {
  CHECK(target_lines(find_target(DeviceChoice::automatic, 1, 0)) ==
        "device  CPUs: device is auto, and there is no GPU here for 1 rank; --device cuda plans "
        "for GPUs\n");
  PlanTarget target = find_target(DeviceChoice::automatic, 2, 2);
  target.memory = usable_host_memory(std::int64_t{1} << 30, 2);
  CHECK(target_lines(target).find("device  GPUs: device is auto, and 2 ranks here have one each\n"
                                  "memory  471.0 MiB a rank: 1.0 GiB of this machine") == 0);
  const auto json = target_json(target);
  CHECK(json["device"] == "cuda");
  CHECK(json["usable_memory"]["bytes"] == target.memory->bytes());
  CHECK(!target_json(find_target(DeviceChoice::cpu, 1, 0)).contains("usable_memory"));
}
