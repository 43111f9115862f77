#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/error.h"
#include "runtime/config/check.h"
#include "runtime/config/load.h"
#include "runtime/config/suggest.h"
#include "tests/runtime/temporary_folder.h"

using namespace sherd;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::string_view kRun =
    R"({"model": {"model_type": "mlp", "layers": [4, 8, 3]}, "data": {"format": "synthetic"}, "steps": 9)";

/// A small run with more members, resolved.
RunConfig run_with(const std::string& members) {
  return parse_run_config(std::string(kRun) + ", " + members + "}", "run.json").run;
}

std::string error_with(const std::string& members) {
  return message_of<ArgumentError>([&] { run_with(members); });
}

struct ExpectedKey {
  std::string path, fate, agrees;
};

/// fixtures/deepspeed_keys.txt: path, fate, value that Sherd agrees with.
std::vector<ExpectedKey> expected_keys() {
  std::vector<ExpectedKey> keys;
  std::ifstream file(SHERD_TEST_DATA "/deepspeed_keys.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    ExpectedKey key;
    std::istringstream(line) >> key.path >> key.fate >> key.agrees;
    keys.push_back(key);
  }
  return keys;
}

/// Some value of the key's type that does not agree.
std::string sample(const SchemaKey& key) {
  const std::string agrees(key.agrees);
  switch (key.type) {
    case ValueType::boolean:
      return agrees == "true" ? "false" : "true";
    case ValueType::integer:
    case ValueType::number:
      return agrees == "1" || agrees == "1.0" ? "2" : "1";
    case ValueType::string: {
      for (const std::string& choice : split_choices(key.choices)) {
        if ("\"" + choice + "\"" != agrees) return "\"" + choice + "\"";
      }
      return "\"word\"";
    }
    case ValueType::integers:
    case ValueType::numbers:
      return "[0.5, 0.5]";
    case ValueType::strings:
      return "[\"word\"]";
    default:
      return "{\"enabled\": true}";
  }
}

/// {"a": {"b": value}} for the path a.b.
std::string nested(const std::string& path, const std::string& value) {
  std::string text = value;
  for (std::string_view at = path; !at.empty(); at = section_of(at)) {
    text = fmt::format("{{\"{}\": {}}}", last_name(at), text);
  }
  return text;
}

/// What the import report says of one key in a file of its own.
KeyFate fate_of(const std::string& path, const std::string& value) {
  const TemporaryFolder folder;
  const std::vector<KeyFate> fates = import_deepspeed(folder.write("ds.json", nested(path, value)));
  REQUIRE(fates.size() == 1);
  return fates[0];
}

}  // namespace

TEST_CASE("the schema knows every DeepSpeed key, and no other") {
  const Schema schema;
  std::set<std::string> expected;
  for (const ExpectedKey& key : expected_keys()) {
    CAPTURE(key.path);
    expected.insert(key.path);
    REQUIRE(schema.find(key.path) != nullptr);
    CHECK(is_deepspeed(*schema.find(key.path)));
    CHECK(schema.find(key.path)->agrees == key.agrees);
  }
  for (const SchemaKey& key : schema.keys()) {
    CAPTURE(key.path);
    if (is_deepspeed(key)) CHECK(expected.contains(std::string(key.path)));
  }
}

TEST_CASE("every DeepSpeed key meets the fate that is stated for it") {
  const Schema schema;
  for (const ExpectedKey& key : expected_keys()) {
    const SchemaKey& row = *schema.find(key.path);
    const std::string value = row.type == ValueType::integers ? "[1]" : sample(row);
    CAPTURE(key.path, value);
    const KeyFate fate = fate_of(key.path, value);
    CHECK(fate.path == key.path);
    CHECK((fate.fate == Fate::no_effect ? "no_effect" : name_of(fate.fate)) == key.fate);
    CHECK((fate.fate == Fate::honoured || !fate.note.empty()));
    CHECK_THAT(to_string(fate.place), ContainsSubstring("ds.json:1:"));
    if (!key.agrees.empty()) CHECK(fate_of(key.path, key.agrees).fate == Fate::honoured);
    const KeyFate automatic = fate_of(key.path, "\"auto\"");
    CHECK(automatic.automatic);
    CHECK(automatic.fate == Fate::honoured);
  }
}

TEST_CASE("loading refuses out loud exactly what is stated as refused") {
  const Schema schema;
  for (const ExpectedKey& key : expected_keys()) {
    if (key.fate != "refused") continue;
    CAPTURE(key.path);
    const std::string object = nested(key.path, sample(*schema.find(key.path)));
    const std::string members = object.substr(1, object.size() - 2);
    CHECK_THAT(error_with("\"train_batch_size\": 2, " + members),
               ContainsSubstring(key.path) && ContainsSubstring("is refused: ") &&
                   ContainsSubstring("run.json:1:"));
    if (key.agrees.empty()) continue;
    const std::string agreeing = nested(key.path, key.agrees);
    CHECK_NOTHROW(run_with("\"train_batch_size\": 2, " + agreeing.substr(1, agreeing.size() - 2)));
  }
}

TEST_CASE("keys without effect are told at the start, and do not change the run") {
  const LoadedConfig config = parse_run_config(
      std::string(kRun) + R"(, "train_batch_size": 2, "tensorboard": {"enabled": true},
      "zero_optimization": {"sub_group_size": 1e9, "contiguous_gradients": true}})",
      "run.json");
  REQUIRE(config.notes.size() == 2);
  CHECK_THAT(config.notes[0], ContainsSubstring("zero_optimization.sub_group_size 1000000000") &&
                                  ContainsSubstring("no effect: the update is one pass"));
  CHECK_THAT(config.notes[1], ContainsSubstring("tensorboard.enabled"));
}

TEST_CASE("several refused keys are named together") {
  const std::string error = error_with(
      R"("amp": {"enabled": true}, "zero_optimization": {"offload_param": {"device": "cpu"}})");
  CHECK_THAT(error, ContainsSubstring("amp: ") && ContainsSubstring("offload_param.device: "));
  CHECK_NOTHROW(run_with(R"("amp": {"enabled": false, "opt_level": "O1"}, "pipeline": {})"));
}

TEST_CASE("a user's DeepSpeed file loads as it stands on four ranks") {
  LoadedConfig config =
      parse_run_config(std::string(kRun) + "}", "run.json", {}, SHERD_TEST_DATA "/ds_config.json");
  resolve_for_world(config, 4);
  const RunConfig& run = config.run;
  CHECK(run.batch.train == 2);
  CHECK(run.batch.micro == 1);
  CHECK(run.batch.accumulation == 1);
  CHECK(run.optimizer.type == OptimizerSpec::Type::adamw);  // DeepSpeed's Adam
  CHECK(run.optimizer.lr == 1e-4);
  CHECK(run.compute == DType::f16);
  CHECK(run.zero.stage == 3);
  CHECK(run.zero.overlap);
  CHECK(run.zero.reduce_bucket_elements == 100000000);
  CHECK_FALSE(run.zero.prefetch_elements.has_value());  // the gather bucket is of stages 1 and 2
  CHECK(run.loss_scale.loss_scale == 0.0);
  CHECK(run.gradient_clipping == 0.0);
  REQUIRE(config.deepspeed.size() == 12);
  REQUIRE(config.notes.size() == 3);
  CHECK(config.notes[2] ==
        "train_batch_size 2 over 4 ranks: ranks 0–1 carry 1 sample, ranks 2–3 none");
}

TEST_CASE("the import report lists each key with its fate") {
  const std::string report = import_report(import_deepspeed(SHERD_TEST_DATA "/ds_config.json"));
  CHECK_THAT(report,
             ContainsSubstring("zero_optimization.stage ") && ContainsSubstring("honoured") &&
                 ContainsSubstring("gradients are reduced by whole units") &&
                 ContainsSubstring("10 honoured, 2 approximated, 0 without effect, 0 refused"));
}

TEST_CASE("zero_optimization reaches the engine") {
  const ZeroConfig zero = run_with(R"("zero_optimization": {"stage": 2, "overlap_comm": false,
      "reduce_bucket_size": 5e8, "allgather_bucket_size": 3e8, "stage3_prefetch_bucket_size": 7,
      "reshard_after_forward": false, "prefetch_units": 3, "gather_burst": 2, "reduce_burst": 4})")
                              .zero;
  CHECK(zero.stage == 2);
  CHECK_FALSE(zero.overlap);
  CHECK(zero.reduce_bucket_elements == 500000000);
  CHECK(zero.prefetch_elements == 300000000);
  CHECK_FALSE(zero.reshard_after_forward);
  CHECK(zero.prefetch_units == 3);
  CHECK(zero.gather_burst == 2);
  CHECK(zero.reduce_burst == 4);
  CHECK(run_with(R"("zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 7})")
            .zero.prefetch_elements == 7);
}

TEST_CASE("the group size has three names") {
  const auto group = [](const std::string& members) {
    return run_with("\"zero_optimization\": {" + members + "}").zero.shard_group_size;
  };
  CHECK(group("") == 0);
  CHECK(group("\"shard_group_size\": 2") == 2);
  CHECK(group("\"mics_shard_size\": 2") == 2);
  CHECK(group("\"mics_shard_size\": -1, \"zero_hpz_partition_size\": 1") == 0);
  CHECK(group("\"zero_hpz_partition_size\": 8, \"mics_shard_size\": 8") == 8);
  CHECK_THAT(error_with(R"("zero_optimization": {"mics_shard_size": 2, "shard_group_size": 4})"),
             ContainsSubstring("2 is not zero_optimization.shard_group_size, which is 4"));
}

TEST_CASE("precision comes from bf16 and fp16, one of them") {
  CHECK(run_with("\"steps_per_print\": 1").compute == DType::f32);
  CHECK(run_with("\"bf16\": {\"enabled\": true}").compute == DType::bf16);
  CHECK(run_with("\"bfloat16\": {\"enabled\": true}").compute == DType::bf16);
  CHECK(run_with("\"bf16\": {\"enabled\": \"auto\"}").compute == DType::f32);
  CHECK_THAT(error_with(R"("bf16": {"enabled": true}, "fp16": {"enabled": true})"),
             ContainsSubstring("bf16 is enabled too"));
  CHECK_THAT(error_with(R"("bf16": {"enabled": true}, "bfloat16": {"enabled": false})"),
             ContainsSubstring("give one of them"));
  const LossScalerSpec scale =
      run_with(
          R"("fp16": {"enabled": true, "loss_scale": 128, "initial_scale_power": 4, "loss_scale_window": 5,
      "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 0.5})")
          .loss_scale;
  CHECK(scale.loss_scale == 128.0);
  CHECK(scale.initial_scale_power == 4);
  CHECK(scale.loss_scale_window == 5);
  CHECK(scale.hysteresis == 3);
  CHECK(scale.consecutive_hysteresis);
  CHECK(scale.min_loss_scale == 0.5);
}

TEST_CASE("the wire dtype is DeepSpeed's communication_data_type") {
  CHECK_FALSE(run_with("\"steps_per_print\": 1").wire.has_value());
  CHECK(run_with("\"communication_data_type\": \"fp32\"").wire == DType::f32);
  CHECK(run_with("\"communication_data_type\": \"fp16\"").wire == DType::f16);
  CHECK(run_with("\"communication_data_type\": \"bfp16\"").wire == DType::bf16);
  CHECK_THAT(error_with(R"("communication_data_type": "fp32", "reduction": "exact")"),
             ContainsSubstring("exact reduction sums in fixed point"));
}

TEST_CASE("activation checkpointing turns on recomputation") {
  const auto recompute = [](const std::string& members) {
    return run_with("\"activation_checkpointing\": {" + members + "}").recompute;
  };
  CHECK_FALSE(recompute(""));
  CHECK(recompute("\"enabled\": true"));
  CHECK(recompute("\"number_checkpoints\": 4"));
  CHECK(recompute("\"partition_activations\": true"));
  CHECK_FALSE(recompute("\"partition_activations\": false"));
  CHECK_FALSE(recompute("\"enabled\": false, \"number_checkpoints\": 4"));
}

TEST_CASE("top-level keys of DeepSpeed reach the run") {
  const RunConfig run = run_with("\"gradient_clipping\": 0.5, \"steps_per_print\": 10");
  CHECK(run.gradient_clipping == 0.5);
  CHECK(run.log_every == 10);
  CHECK_THAT(error_with(R"("log": {"every": 3}, "steps_per_print": 10)"),
             ContainsSubstring("log.every: is not steps_per_print, which is 10"));
}

TEST_CASE("optimizers carry DeepSpeed's parameters") {
  const auto optimizer = [](const std::string& members) {
    return run_with("\"optimizer\": {" + members + "}").optimizer;
  };
  const OptimizerSpec adam = optimizer(
      R"("type": "Adam", "params": {"lr": 0.5, "betas": [0.8, 0.9], "eps": 1e-3, "weight_decay": 0.1,
      "bias_correction": false, "adam_w_mode": false, "decay_all": true, "torch_adam": true})");
  CHECK(adam.type == OptimizerSpec::Type::adam);
  CHECK(adam.lr == 0.5);
  CHECK(adam.beta1 == 0.8);
  CHECK(adam.beta2 == 0.9);
  CHECK(adam.epsilon == 1e-3);
  CHECK(adam.weight_decay == 0.1);
  CHECK_FALSE(adam.bias_correction);
  CHECK(adam.decay_all);
  CHECK(optimizer("\"type\": \"Adam\"").type == OptimizerSpec::Type::adamw);
  const OptimizerSpec sgd = optimizer(
      R"("type": "SGD", "params": {"momentum": 0.9, "nesterov": true, "weight_decay": 0.2})");
  CHECK(sgd.type == OptimizerSpec::Type::sgd);
  CHECK(sgd.momentum == 0.9);
  CHECK(sgd.nesterov);
  CHECK(sgd.weight_decay == 0.2);
  CHECK(optimizer(R"("type": "SGD", "params": {"momentum": 0.9, "dampening": 0.1})").dampening ==
        0.1);
}

TEST_CASE("optimizer parameters that cannot be are errors") {
  const auto error = [](const std::string& members) {
    return error_with("\"optimizer\": {" + members + "}");
  };
  CHECK_THAT(error(R"("params": {"betas": [0.9]})"),
             ContainsSubstring("got [0.9], expected two numbers"));
  CHECK_THAT(error(R"("params": {"betas": [0.9, 1.0]})"), ContainsSubstring("below 1"));
  CHECK_THAT(error(R"("params": {"momentum": 0.9})"),
             ContainsSubstring("AdamW has no such key; SGD has"));
  CHECK_THAT(error(R"("type": "SGD", "params": {"nesterov": true})"),
             ContainsSubstring("needs momentum above 0"));
  CHECK_THAT(error(R"("params": {"lr": -1})"), ContainsSubstring("the nearest is 0"));
  CHECK_THAT(error(R"("params": {"max_grad_norm": 1.0})"),
             ContainsSubstring("say gradient_clipping"));
}

TEST_CASE("schedules carry DeepSpeed's parameters and defaults") {
  using Type = ScheduleSpec::Type;
  const auto schedule = [](const std::string& members) {
    return run_with("\"optimizer\": {\"params\": {\"lr\": 0.25}}, \"scheduler\": {" + members + "}")
        .schedule;
  };
  CHECK(schedule("").type == Type::constant);
  CHECK(schedule("").warmup_num_steps == 0);

  const ScheduleSpec warmup = schedule(R"("type": "WarmupLR")");
  CHECK(warmup.type == Type::warmup_lr);
  CHECK(warmup.warmup_num_steps == 1000);
  CHECK(warmup.warmup_max_lr == 0.001);
  CHECK(warmup.warmup_log);
  CHECK(schedule(R"("type": "WarmupLR", "params": {"warmup_max_lr": "auto"})").warmup_max_lr ==
        0.25);

  const ScheduleSpec decay = schedule(
      R"("type": "WarmupDecayLR", "params": {"warmup_min_lr": 0.1, "warmup_max_lr": 0.2,
      "warmup_num_steps": 3, "warmup_type": "linear", "total_num_steps": "auto"})");
  CHECK(decay.type == Type::warmup_decay_lr);
  CHECK(decay.warmup_min_lr == 0.1);
  CHECK(decay.warmup_max_lr == 0.2);
  CHECK(decay.warmup_num_steps == 3);
  CHECK_FALSE(decay.warmup_log);
  CHECK(decay.total_num_steps == 9);  // steps

  const ScheduleSpec cosine =
      schedule(R"("type": "WarmupCosineLR", "params": {"total_num_steps": 50,
      "warmup_min_ratio": 0.25, "cos_min_ratio": 0.5})");
  CHECK(cosine.type == Type::warmup_cosine_lr);
  CHECK(cosine.total_num_steps == 50);
  CHECK(cosine.warmup_min_ratio == 0.25);
  CHECK(cosine.cos_min_ratio == 0.5);

  const ScheduleSpec linear = schedule(R"("type": "linear", "params": {"min_lr": 0.125})");
  CHECK(linear.type == Type::linear);
  CHECK(linear.min_lr == 0.125);
  CHECK(linear.total_num_steps == 9);
  CHECK(schedule(R"("type": "cosine")").type == Type::cosine);
}

TEST_CASE("OneCycle carries all its parameters") {
  const ScheduleSpec cycle = run_with(R"("scheduler": {"type": "OneCycle", "params": {
      "cycle_min_lr": 0.1, "cycle_max_lr": 0.2, "decay_lr_rate": 0.3, "cycle_first_step_size": 40,
      "cycle_first_stair_count": 5, "decay_step_size": 6, "cycle_momentum": false,
      "cycle_min_mom": 0.7, "cycle_max_mom": 0.75, "decay_mom_rate": 0.01}})")
                                 .schedule;
  CHECK(cycle.type == ScheduleSpec::Type::one_cycle);
  CHECK(cycle.cycle_min_lr == 0.1);
  CHECK(cycle.cycle_max_lr == 0.2);
  CHECK(cycle.decay_lr_rate == 0.3);
  CHECK(cycle.cycle_first_step_size == 40);
  CHECK(cycle.cycle_second_step_size == 40);
  CHECK(cycle.cycle_first_stair_count == 5);
  CHECK(cycle.cycle_second_stair_count == 5);
  CHECK(cycle.decay_step_size == 6);
  CHECK_FALSE(cycle.cycle_momentum);
  CHECK(cycle.cycle_min_mom == 0.7);
  CHECK(cycle.cycle_max_mom == 0.75);
  CHECK(cycle.decay_mom_rate == 0.01);
  CHECK_THAT(error_with(R"("scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1}})"),
             ContainsSubstring("cycle_max_lr: is missing; OneCycle needs it"));
}

TEST_CASE("schedule parameters that cannot be are errors") {
  CHECK_THAT(error_with(R"("scheduler": {"type": "linear", "params": {"cos_min_ratio": 0.1}})"),
             ContainsSubstring("linear has no such key; WarmupCosineLR has"));
  CHECK_THAT(error_with(R"("scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0.5}})"),
             ContainsSubstring("0.001 is below warmup_min_lr 0.5"));
  CHECK_THAT(error_with(R"("scheduler": {"type": "Warmup"})"),
             ContainsSubstring("did you mean \"WarmupLR\""));
}
