#include "runtime/engine_options.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "core/error.h"
#include "models/build.h"
#include "runtime/config/load.h"

using namespace sherd;

namespace {

RunConfig run_config(const std::string& more, int world) {
  LoadedConfig config = parse_run_config(
      R"({"model": {"model_type": "mlp", "layers": [8, 16, 16, 16, 3]},
          "data": {"format": "synthetic"}, "train_batch_size": 10, "steps": 1, )" +
          more + "}",
      "test");
  resolve_for_world(config, world);
  return config.run;
}

EngineOptions options_of(const std::string& more, int world = 4) {
  const RunConfig run = run_config(more, world);
  return engine_options(run, build_model(run.model), world);
}

}  // namespace

TEST_CASE("a bucket of elements holds whole units of typical size") {
  const std::vector<std::int64_t> sizes = {1000, 100, 100, 100, 900};
  CHECK(units_in_bucket(sizes, 0) == 0);
  CHECK(units_in_bucket(sizes, 1) == 1);
  CHECK(units_in_bucket(sizes, 199) == 1);
  CHECK(units_in_bucket(sizes, 399) == 3);
  CHECK(units_in_bucket(sizes, std::int64_t{1} << 40) == 5);
  CHECK(units_in_bucket(std::vector<std::int64_t>(100, 10), 1'000'000) == kMostUnitsInBucket);
  CHECK(units_in_bucket({}, 100) == 0);
}

TEST_CASE("a run file's bucket sizes become numbers of units") {
  const EngineOptions options = options_of(
      R"("zero_optimization": {"stage": 3, "reduce_bucket_size": 600, "stage3_prefetch_bucket_size": 0})");
  CHECK(options.plan.reduce_burst == 2);  // of 272 elements
  CHECK(options.plan.prefetch == 0);
  CHECK(options.plan.stage == 3);
  CHECK(options.plan.group_size == 4);
}

TEST_CASE("without overlap nothing runs ahead or lags behind") {
  const EngineOptions options = options_of(
      R"("zero_optimization": {"stage": 3, "overlap_comm": false, "prefetch_units": 3, "gather_burst": 2})");
  CHECK(options.plan.prefetch == 0);
  CHECK(options.plan.gather_burst == 1);
  CHECK(options.plan.reduce_depth == 1);
}

TEST_CASE("the largest micro-batch and the labels of a step follow from the cut") {
  const EngineOptions options = options_of(R"("train_micro_batch_size_per_gpu": 4)");
  CHECK(options.largest_micro_batch == BatchShape{4, 1});  // 10 samples are cut 4, 3, 3
  CHECK(options.labels_per_step == 10);
  CHECK(options.plan.rounds == 1);
}

TEST_CASE("recompute leaves out the last unit, and the wire follows the arithmetic") {
  const EngineOptions options =
      options_of(R"("activation_checkpointing": {"enabled": true}, "bf16": {"enabled": true})");
  CHECK(options.plan.recompute == std::vector<bool>{true, true, true, false});
  CHECK(options.plan.compute == DType::bf16);
  CHECK(options.plan.wire == DType::bf16);
  CHECK(options_of(R"("bf16": {"enabled": true}, "communication_data_type": "fp32")").plan.wire ==
        DType::f32);
}

TEST_CASE("shard weights are those of a group, and the same for all groups") {
  const std::string group = R"("zero_optimization": {"stage": 3, "shard_group_size": 2}, )";
  CHECK(options_of(group + R"("placement": {"shards": [1, 3, 1, 3]})").shard_weights ==
        std::vector<double>{1, 3});
  CHECK_THROWS_AS(options_of(group + R"("placement": {"shards": [1, 3, 1, 2]})"), ArgumentError);
}

TEST_CASE("some units run again, the last never") {
  const auto again = [](const std::string& more) {
    return options_of("\"activation_checkpointing\": {" + more + "}").plan.recompute;
  };
  CHECK(again(R"("enabled": true, "units": 2)") == std::vector<bool>{true, true, false, false});
  CHECK(again(R"("enabled": true)") == std::vector<bool>{true, true, true, false});
  CHECK(again(R"("enabled": true, "units": 99)") == std::vector<bool>{true, true, true, false});
  CHECK(again(R"("units": 2)") == std::vector<bool>(4, false));
}
