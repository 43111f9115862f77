#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <filesystem>
#include <string>

#include "tests/apps/command_run.h"

using namespace sherd;
using namespace sherd::testing;

TEST_CASE("exact mode writes the same model, byte for byte, at every stage and world size",
          "[dist]") {
  const TemporaryFolder folder;
  const bool llama = GENERATE(false, true);
  const std::string run = "train " + (llama ? write_llama_run(folder) : write_mlp_run(folder)) +
                          " --set reduction=exact --set output=" + folder.path("run");
  std::string first;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (int stage = 0; stage <= 3; ++stage) {
      INFO(ranks << " ranks, stage " << stage);
      const CommandResult result =
          run_ranks(ranks, fmt::format("{} --set zero_optimization.stage={}", run, stage));
      INFO(result.output);
      REQUIRE(result.exit_code == 0);
      const std::string model = folder.read("run/model/model.safetensors");
      REQUIRE(!model.empty());
      if (first.empty()) first = model;
      CHECK(model == first);
      std::filesystem::remove_all(folder.path("run"));
    }
  }
}

TEST_CASE("exact mode does not depend on groups, weights, prefetch, bursts or recompute",
          "[dist]") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_llama_run(folder) + " --set reduction=exact";
  REQUIRE(run_ranks(1, run).exit_code == 0);
  const std::string model = folder.read("run/model/model.safetensors");
  const auto alone = metrics_of(folder);
  const std::string options =
      GENERATE("--set zero_optimization.stage=3 --set zero_optimization.shard_group_size=2",
               "--set zero_optimization.stage=3 --set 'placement.shards=[1,0,3,2]' --set "
               "'placement.batch=[0,1,1,2]'",
               "--set zero_optimization.stage=3 --set zero_optimization.prefetch_units=3 --set "
               "zero_optimization.gather_burst=2 --set zero_optimization.reduce_burst=3",
               "--set zero_optimization.stage=2 --set activation_checkpointing.enabled=true --set "
               "zero_optimization.overlap_comm=false");
  const CommandResult result = run_ranks(4, run + " " + options);
  INFO(options << "\n" << result.output);
  REQUIRE(result.exit_code == 0);
  CHECK(folder.read("run/model/model.safetensors") == model);
  const auto together = metrics_of(folder);
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(together[i]["loss"] == alone[i]["loss"]);
  CHECK_THAT(together.back()["val_loss"].get<double>(),
             Catch::Matchers::WithinRel(alone.back()["val_loss"].get<double>(), 1e-6));
}

TEST_CASE("fast mode stays close to exact mode", "[dist]") {
  const TemporaryFolder folder;
  const std::string run = "train " + write_llama_run(folder);
  REQUIRE(run_ranks(1, run + " --set reduction=exact").exit_code == 0);
  const auto exact = metrics_of(folder);
  REQUIRE(run_ranks(3, run + " --set zero_optimization.stage=2").exit_code == 0);
  const auto fast = metrics_of(folder);
  REQUIRE(fast.size() == exact.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    for (const char* field : {"loss", "grad_norm"}) {
      CHECK_THAT(fast[i][field].get<double>(),
                 Catch::Matchers::WithinRel(exact[i][field].get<double>(), 1e-4));
    }
  }
}
