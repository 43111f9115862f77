#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "core/cuda_backend.h"
#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

TEST_CASE("kernels are measured beside limits of the same run") {
  const CommandResult result = run_sherd("bench kernels --device cpu --threads 1 --repetitions 1");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.output.starts_with("medians of 1 on 1 thread; attention in f32 by"));
  CHECK(result.says("limits, measured in this run: a copy of 64.0 MiB"));
  for (const char* kernel : {"linear forward", "attention backward", "rms_norm backward", "rope",
                             "swiglu backward", "embedding backward", "cross_entropy", "adamw"}) {
    CHECK(result.says(kernel));
  }
}

TEST_CASE("collectives are measured by every way there is, on any number of ranks") {
  const int ranks = GENERATE(1, 3);
  const CommandResult result =
      run_ranks(ranks, "bench collectives --device cpu --largest 256KiB --repetitions 2");
  INFO(result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(result.says(ranks == 1 ? "1 rank on CPUs" : "3 ranks on CPUs"));
  CHECK(result.says("a core of each rank, all at once, measured in this run"));
  CHECK(result.says("window ms"));
  CHECK(result.says("MPI ms"));
  CHECK(result.says("256.0 KiB"));
}

TEST_CASE("a measurement on GPUs is refused where there are none") {
  if (cuda_device_count() > 0) SKIP("there are GPUs");
  const std::string what = GENERATE("kernels", "collectives");
  const CommandResult result = run_sherd("bench " + what + " --device cuda");
  INFO(result.output);
  CHECK(result.exit_code == 2);
  CHECK(result.says("there is no GPU"));
}

TEST_CASE("doctor tells of ranks, libraries and GPUs") {
  const CommandResult result = run_ranks(2, "doctor");
  INFO(result.output);
  CHECK(result.exit_code == 0);
  CHECK(result.says("rank 1 on "));
  CHECK(result.says("cuDNN"));
  CHECK(result.says("NCCL"));
  CHECK(result.says("GPU"));
}

TEST_CASE("measurements run on GPUs beside their limits", "[gpu]") {
  const CommandResult kernels = run_sherd("bench kernels --device cuda --repetitions 1");
  INFO(kernels.output);
  CHECK(kernels.exit_code == 0);
  CHECK(kernels.says("bf16 products of 8192 x 8192 x 8192"));
  const int ranks = cuda_device_count() > 1 ? 2 : 1;
  const CommandResult collectives =
      run_ranks(ranks, "bench collectives --device cuda --largest 4MiB --repetitions 2");
  INFO(collectives.output);
  CHECK(collectives.exit_code == 0);
  CHECK(collectives.says("NCCL ms"));
  CHECK(collectives.says("training takes"));
}
