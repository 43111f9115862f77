#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/error.h"
#include "runtime/config/byte_size.h"
#include "runtime/config/fates.h"
#include "runtime/config/resolve.h"

namespace sherd {
namespace {

std::optional<std::int64_t> given_integer(Settings& settings, std::string_view path) {
  if (!settings.given(path)) return std::nullopt;
  return settings.integer(path);
}

/// Two names of one value: both may be given when they agree.
void check_same(Settings& settings, std::string_view path, std::string_view other) {
  if (!settings.given(path) || !settings.given(other)) return;
  if (same_json(settings.find(path)->value, settings.find(other)->value)) return;
  settings.fail(path, fmt::format("is not {}, which is {}; give one of them", other,
                                  write_json(settings.find(other)->value)));
}

DType resolve_compute(Settings& settings) {
  check_same(settings, "bf16.enabled", "bfloat16.enabled");
  if (settings.given("bfloat16.enabled")) {
    settings.boolean_or("bf16.enabled", settings.boolean("bfloat16.enabled"), "bfloat16.enabled");
  }
  const bool brain = settings.boolean("bf16.enabled"), half = settings.boolean("fp16.enabled");
  if (brain && half) settings.fail("fp16.enabled", "bf16 is enabled too; one of them only");
  return half ? DType::f16 : brain ? DType::bf16 : DType::f32;
}

std::optional<DType> resolve_wire(Settings& settings, bool exact) {
  const std::string_view path = "communication_data_type";
  if (!settings.given(path)) return std::nullopt;
  if (exact) {
    settings.fail(path,
                  "exact reduction sums in fixed point; take this key out, or set it to \"auto\"");
  }
  const std::string name = settings.text(path);
  return name == "fp32" ? DType::f32 : name == "fp16" ? DType::f16 : DType::bf16;
}

bool resolve_recompute(Settings& settings) {
  const auto asks = [&](std::string_view path) {
    const Setting* setting = settings.find(path);
    return setting != nullptr && (setting->value.boolean || setting->value.number > 0.0);
  };
  for (const char* path : {"activation_checkpointing.partition_activations",
                           "activation_checkpointing.number_checkpoints"}) {
    if (asks(path)) return settings.boolean_or("activation_checkpointing.enabled", true, path);
  }
  return settings.boolean_or("activation_checkpointing.enabled", false, "");
}

/// Three names: Sherd's own, MiCS's and ZeRO++'s.
int resolve_group(Settings& settings) {
  const std::string_view own = "zero_optimization.shard_group_size";
  for (const std::string_view path :
       {"zero_optimization.mics_shard_size", "zero_optimization.zero_hpz_partition_size"}) {
    const std::int64_t size = given_integer(settings, path).value_or(-1);
    const bool off = size < 1 || (size == 1 && path.ends_with("hpz_partition_size"));
    if (off) continue;
    const Setting* before = settings.find(own);
    if (before != nullptr && *before->value.integer != size) {
      settings.fail(path, fmt::format("{} is not {}, which is {} ({}); give one of them", size, own,
                                      write_json(before->value), to_string(before->origin)));
    }
    if (before == nullptr) settings.derive(own, json_of(size), std::string(path));
  }
  return static_cast<int>(settings.integer_or(own, 0, ""));
}

std::vector<double> resolve_weights(Settings& settings, std::string_view path) {
  std::vector<double> weights = settings.numbers(path);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sum == 0.0) settings.fail(path, "at least one weight must be above 0");
  if (!std::isfinite(sum))
    settings.fail(path, "the sum of the weights is too large; only ratios count");
  return weights;
}

PlaceBy resolve_share(Settings& settings, std::string_view path, std::vector<double>& weights) {
  const std::string word = settings.text(path);
  if (word == "memory") return PlaceBy::memory;
  if (word == "fill") return PlaceBy::fill;
  if (word == "speed") return PlaceBy::speed;
  if (word == "even") return PlaceBy::weights;
  weights = resolve_weights(settings, path);
  return PlaceBy::weights;
}

std::vector<std::int64_t> resolve_memory(Settings& settings) {
  const std::string_view path = "placement.memory";
  std::vector<std::int64_t> sizes;
  if (!settings.given(path)) return sizes;
  for (const JsonValue& item : settings.find(path)->value.items) {
    try {
      sizes.push_back(parse_bytes(item.text));
    } catch (const ArgumentError& error) {
      settings.fail(path, error.what());
    }
  }
  if (sizes.empty()) settings.fail(path, "is empty: one size for all ranks, or one per rank");
  return sizes;
}

void resolve_top(Settings& settings, RunConfig& run) {
  run.output = settings.text("output");
  run.steps = settings.integer("steps");
  run.seed = static_cast<std::uint64_t>(settings.integer("seed"));
  run.gradient_clipping = settings.number("gradient_clipping");
  run.exact = settings.text("reduction") == "exact";
  run.skip_limit = static_cast<int>(settings.integer("skip_limit"));
  run.validate_every = settings.integer("validation.every");
  run.validation_batches = settings.integer("validation.batches");
  check_same(settings, "log.every", "steps_per_print");
  const bool print = settings.given("steps_per_print");
  run.log_every = settings.integer_or("log.every", print ? settings.integer("steps_per_print") : 1,
                                      print ? "steps_per_print" : "");
  const std::string device = settings.text("device");
  run.device = device == "cpu"    ? DeviceChoice::cpu
               : device == "cuda" ? DeviceChoice::cuda
                                  : DeviceChoice::automatic;
  run.threads = static_cast<int>(settings.integer("threads"));
  run.share_gpus = settings.boolean("share_gpus");
  run.record_steps = settings.boolean("record_steps");
  run.tune_products = settings.boolean("tune_products");
  run.timeout_seconds = settings.number("timeout_seconds");
  run.checkpoint.every = settings.integer("checkpoint.every");
  run.checkpoint.keep_last = static_cast<int>(settings.integer("checkpoint.keep_last"));
  run.checkpoint.final_model = settings.boolean("checkpoint.final_model");
}

}  // namespace

ZeroConfig resolve_zero(Settings& settings) {
  ZeroConfig zero;
  zero.stage = static_cast<int>(settings.integer("zero_optimization.stage"));
  zero.shard_group_size = resolve_group(settings);
  zero.prefetch_units = static_cast<int>(settings.integer("zero_optimization.prefetch_units"));
  zero.gather_burst = static_cast<int>(settings.integer("zero_optimization.gather_burst"));
  zero.reduce_burst = static_cast<int>(settings.integer("zero_optimization.reduce_burst"));
  zero.reshard_after_forward = settings.boolean("zero_optimization.reshard_after_forward");
  zero.overlap = settings.boolean("zero_optimization.overlap_comm");
  zero.prefetch_elements =
      given_integer(settings, zero.stage == 3 ? "zero_optimization.stage3_prefetch_bucket_size"
                                              : "zero_optimization.allgather_bucket_size");
  zero.reduce_bucket_elements = given_integer(settings, "zero_optimization.reduce_bucket_size");
  return zero;
}

PlacementConfig resolve_placement(Settings& settings) {
  PlacementConfig placement;
  placement.shards = resolve_share(settings, "placement.shards", placement.shard_weights);
  placement.batch = resolve_share(settings, "placement.batch", placement.batch_weights);
  placement.memory = resolve_memory(settings);
  if (placement.batch == PlaceBy::speed) {
    if (!settings.given("placement.speed")) {
      settings.fail("placement.batch", "goes by speed: give placement.speed, a number per rank");
    }
    placement.speed = resolve_weights(settings, "placement.speed");
  }
  return placement;
}

RunConfig resolve_run(Settings& settings) {
  refuse_unsupported(settings);
  RunConfig run;
  run.model = resolve_model(settings, ModelUse::training);
  run.data = resolve_data(settings, run.model);
  run.optimizer = resolve_optimizer(settings);
  run.schedule = resolve_schedule(settings, run.optimizer);
  run.loss_scale = resolve_loss_scale(settings);
  run.zero = resolve_zero(settings);
  run.placement = resolve_placement(settings);
  run.compute = resolve_compute(settings);
  resolve_top(settings, run);
  run.wire = resolve_wire(settings, run.exact);
  run.recompute = resolve_recompute(settings);
  run.recompute_units = settings.integer("activation_checkpointing.units");
  return run;
}

}  // namespace sherd
