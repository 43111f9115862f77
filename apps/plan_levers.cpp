#include "apps/plan_levers.h"

#include <fmt/format.h>

#include <algorithm>

namespace sherd {
namespace {

constexpr int kShardAll = 3;

/// Sets a value, unless it is that already.
template <class T>
Edit setting(T RunConfig::*part, const char* key, T value) {
  return [=](RunConfig& run) -> std::optional<std::string> {
    if (run.*part == value) return std::nullopt;
    run.*part = value;
    return fmt::format("{}={}", key, value);
  };
}

template <class T>
Edit zero_setting(T ZeroConfig::*part, const char* key, T value) {
  return [=](RunConfig& run) -> std::optional<std::string> {
    if (run.zero.stage == 0 || run.zero.*part == value) return std::nullopt;
    run.zero.*part = value;
    return fmt::format("zero_optimization.{}={}", key, value);
  };
}

std::optional<std::string> shard_by_memory(RunConfig& run) {
  if (run.zero.stage == 0 || run.zero.shard_group_size == 1) return std::nullopt;
  run.placement.shards = PlaceBy::memory;
  run.placement.shard_weights.clear();
  return "placement.shards=memory";
}

/// Micro-batches stay as small as they are.
std::optional<std::string> deal_by_memory(RunConfig& run) {
  run.placement.batch = PlaceBy::memory;
  run.placement.batch_weights.clear();
  run.placement.most_samples = run.batch.micro;
  return "placement.batch=memory";
}

std::optional<std::string> shard_evenly(RunConfig& run) {
  run.placement.shards = PlaceBy::weights;
  run.placement.shard_weights.clear();
  return "placement.shards=even";
}

std::optional<std::string> deal_evenly(RunConfig& run) {
  run.placement.batch = PlaceBy::weights;
  run.placement.batch_weights.clear();
  return "placement.batch=even";
}

std::optional<std::string> gather_late(RunConfig& run) {
  ZeroConfig& zero = run.zero;
  const bool ahead = zero.prefetch_elements ? *zero.prefetch_elements > 0 : zero.prefetch_units > 0;
  if (zero.stage == 0 || !zero.overlap || !ahead) return std::nullopt;
  const char* key = !zero.prefetch_elements   ? "prefetch_units"
                    : zero.stage == kShardAll ? "stage3_prefetch_bucket_size"
                                              : "allgather_bucket_size";
  if (zero.prefetch_elements) zero.prefetch_elements = 0;
  zero.prefetch_units = 0;
  return fmt::format("zero_optimization.{}=0", key);
}

/// Most samples that a micro-batch of the run really has.
std::int64_t micro_samples(const RunConfig& run) {
  return std::min(run.batch.micro, run.batch.train);
}

/// The step keeps its samples: what leaves the micro-batch becomes rounds of accumulation.
Edit micro_batch(std::int64_t samples) {
  return [=](RunConfig& run) -> std::optional<std::string> {
    if (run.placement.batch != PlaceBy::weights || samples >= run.batch.micro) return std::nullopt;
    run.batch.micro = samples;
    return fmt::format("train_micro_batch_size_per_gpu={} (train_batch_size stays {})", samples,
                       run.batch.train);
  };
}

Lever stages(const RunConfig& run) {
  Lever lever;
  for (int stage = run.zero.stage + 1; stage <= kShardAll; ++stage) {
    lever.push_back([stage](RunConfig& changed) -> std::optional<std::string> {
      changed.zero.stage = stage;
      return fmt::format("zero_optimization.stage={}", stage);
    });
  }
  return lever;
}

/// Larger groups; 0 stands for all ranks.
Lever groups(const RunConfig& run, int world) {
  Lever lever;
  const int now = run.zero.shard_group_size;
  if (now == 0 || now == world) return lever;
  const auto add = [&](int group) {
    lever.push_back(zero_setting(&ZeroConfig::shard_group_size, "shard_group_size", group));
  };
  for (int group = now + 1; group < world; ++group) {
    if (world % group == 0) add(group);
  }
  add(0);
  return lever;
}

Lever smaller_micro_batches(const RunConfig& run) {
  Lever lever;
  for (std::int64_t micro = micro_samples(run) / 2; micro >= 1; micro /= 2) {
    lever.push_back(micro_batch(micro));
  }
  return lever;
}

Lever recompute(const RunConfig& run) {
  Lever lever;
  const char* key = "activation_checkpointing.enabled";
  if (!run.recompute) lever.push_back(setting(&RunConfig::recompute, key, true));
  if (run.recompute_units == 0) return lever;
  lever.push_back([](RunConfig& changed) -> std::optional<std::string> {
    std::string text = changed.recompute ? "" : "activation_checkpointing.enabled=true, ";
    changed.recompute = true;
    changed.recompute_units = 0;
    return text + "activation_checkpointing.units=0";
  });
  return lever;
}

/// `unequal`: whether what goes by memory would differ from what is even.
std::vector<Lever> all_levers(const RunConfig& run, int world, bool unequal) {
  const PlacementConfig& placement = run.placement;
  std::vector<Lever> levers;
  const auto add = [&](Lever lever) {
    if (!lever.empty()) levers.push_back(std::move(lever));
  };
  const bool whole = run.zero.stage == 0;  // then how shards are cut comes after that they are
  if (world > 1 && whole) add(stages(run));
  const bool shards_fixed = placement.shards == PlaceBy::weights;
  const bool batch_fixed = placement.batch == PlaceBy::weights;
  if (world > 1 && unequal) {
    if (shards_fixed) add({shard_by_memory});
    if (batch_fixed) add({deal_by_memory});
  } else if (world > 1) {
    if (!placement.shard_weights.empty() || !shards_fixed) add({shard_evenly});
    if (!placement.batch_weights.empty() || !batch_fixed) add({deal_evenly});
  }
  if (world > 1) {
    if (!run.zero.reshard_after_forward) {
      add({zero_setting(&ZeroConfig::reshard_after_forward, "reshard_after_forward", true)});
    }
    if (!whole) add(stages(run));
    add(groups(run, world));
    add({zero_setting(&ZeroConfig::gather_burst, "gather_burst", 1)});
    if (!run.zero.reduce_bucket_elements) {
      add({zero_setting(&ZeroConfig::reduce_burst, "reduce_burst", 1)});
    }
    add({gather_late});
  }
  add(smaller_micro_batches(run));
  add(recompute(run));
  return levers;
}

}  // namespace

std::vector<Lever> levers_of(const RunConfig& run, const DeviceMemory& memory) {
  return all_levers(run, memory.world(), !memory.is_same_for_all());
}

std::vector<Lever> even_levers_of(const RunConfig& run, int world) {
  return all_levers(run, world, false);
}

}  // namespace sherd
