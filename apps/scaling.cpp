#include "apps/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "apps/run_plan.h"
#include "models/build.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

constexpr int kStages = 4;
constexpr std::int64_t kMlpSteps = 8;
constexpr std::int64_t kWidest = std::int64_t{1} << 12;
/// Feed-forward layers grow by a 64th of the model's width, which GPUs like and which is fine
/// enough, and by no less than 8.
constexpr std::int64_t kGranules = 64;
constexpr std::int64_t kNarrowGranule = 8;
constexpr std::int64_t kWidestFeedForward = 16;

bool is_mlp(const ModelConfig& model) { return model.model_type == "mlp"; }

std::int64_t scaled(std::int64_t size, std::int64_t width, std::int64_t steps) {
  return std::max<std::int64_t>(1, (size * width + steps / 2) / steps);
}

/// The largest number in [low, high] that works, when smaller ones do where larger ones do; low - 1
/// when none does.
std::int64_t largest_that(std::int64_t low, std::int64_t high,
                          const std::function<bool(std::int64_t)>& works) {
  std::int64_t fits = low - 1;
  for (std::int64_t step = 1; fits < high; step *= 2) {  // first in growing strides
    const std::int64_t next = std::min(high, fits + step);
    if (!works(next)) {
      high = next - 1;
      break;
    }
    fits = next;
  }
  while (fits < high) {
    const std::int64_t middle = fits + (high - fits + 1) / 2;
    if (works(middle)) {
      fits = middle;
    } else {
      high = middle - 1;
    }
  }
  return fits;
}

class ScalingSearch {
 public:
  ScalingSearch(const RunConfig& run, const DeviceMemory& memory, int stage)
      : run_(run), model_(run.model), memory_(memory), bytes_(memory.per_rank()) {
    const std::vector<std::int64_t>& sizes = memory.sizes();
    found_.ranks = memory.world();
    found_.memory_bytes = *std::min_element(sizes.begin(), sizes.end());
    if (!memory.is_same_for_all()) found_.sizes = sizes;
    found_.stage = stage;
    run_.zero.stage = stage;
    run_.zero.shard_group_size = 0;
    run_.placement = {};
    if (stage > 0 && !memory.is_same_for_all()) run_.placement.shards = PlaceBy::memory;
    run_.batch.train = run_.batch.micro * found_.ranks;
    run_.model.path.clear();
  }

  LargestModel run() {
    const std::int64_t steps = width_steps(model_);
    const bool deepens = !is_mlp(model_);
    const std::int64_t layers = deepens ? deepen(steps) : 1;
    const bool narrows = layers == 0 || (!deepens && !fits(1, steps));
    if (narrows) {
      widen(1, 1, steps - 1);
    } else if (!deepens || layers == kMostLayers) {
      const std::int64_t width = widen(layers, steps, kWidest * steps);
      // A little wider and flatter may fill more than what is deepest.
      if (deepens) deepen(width + 1);
    }
    if (deepens && found_.parameters > 0) fill_up();
    return found_;
  }

 private:
  std::int64_t deepen(std::int64_t width) {
    return largest_that(1, kMostLayers, [&](std::int64_t layers) { return fits(layers, width); });
  }

  std::int64_t widen(std::int64_t layers, std::int64_t from, std::int64_t to) {
    return largest_that(from, to, [&](std::int64_t width) { return fits(layers, width); });
  }

  /// Gives what less than a layer leaves to feed-forward layers.
  void fill_up() {
    const ModelConfig model = found_.model;
    const std::int64_t granule = std::max(kNarrowGranule, model.hidden_size / kGranules);
    const std::int64_t most = kWidestFeedForward * model.hidden_size / granule;
    largest_that(1, most, [&](std::int64_t more) {
      ModelConfig wider = model;
      wider.intermediate_size += more * granule;
      return fits(wider);
    });
  }

  bool fits(std::int64_t layers, std::int64_t width) {
    return fits(scaled_model(model_, layers, width));
  }

  /// Remembers the largest that does.
  bool fits(const ModelConfig& model) {
    run_.model = model;
    place_run(run_, build_model(model), found_.ranks, bytes_);
    const RunPlan plan = plan_run(run_, found_.ranks);
    if (!memory_.holds(plan)) return false;
    if (plan.parameters <= found_.parameters) return true;
    found_.parameters = plan.parameters;
    found_.model = model;
    found_.layers = is_mlp(model) ? static_cast<std::int64_t>(model.layers.size()) - 1
                                  : model.num_hidden_layers;
    found_.hidden_size = is_mlp(model)
                             ? *std::max_element(model.layers.begin() + 1, model.layers.end())
                             : model.hidden_size;
    return true;
  }

  RunConfig run_;
  ModelConfig model_;
  const DeviceMemory& memory_;
  std::vector<std::int64_t> bytes_;  // that each rank may take
  LargestModel found_;
};

}  // namespace

std::int64_t width_steps(const ModelConfig& model) {
  return is_mlp(model) ? kMlpSteps : model.num_key_value_heads;
}

ModelConfig scaled_model(const ModelConfig& model, std::int64_t layers, std::int64_t width) {
  ModelConfig other = model;
  const std::int64_t steps = width_steps(model);
  if (is_mlp(model)) {
    for (std::size_t i = 1; i + 1 < other.layers.size(); ++i) {
      other.layers[i] = scaled(model.layers[i], width, steps);
    }
    return other;
  }
  other.num_hidden_layers = static_cast<int>(layers);
  other.hidden_size = scaled(model.hidden_size, width, steps);
  other.intermediate_size = scaled(model.intermediate_size, width, steps);
  other.num_key_value_heads = static_cast<int>(width);
  other.num_attention_heads =
      static_cast<int>(width * (model.num_attention_heads / model.num_key_value_heads));
  return other;
}

LargestModel find_largest_model(const RunConfig& run, const DeviceMemory& memory, int stage) {
  return ScalingSearch(run, memory, stage).run();
}

std::vector<std::string> changes_for(const LargestModel& found, const RunConfig& run) {
  std::vector<std::string> changes;
  const auto set = [&](std::string_view key, const auto& value) {
    changes.push_back(fmt::format("{}={}", key, value));
  };
  const ModelConfig& model = found.model;
  if (is_mlp(model)) {
    set("model.layers", fmt::format("[{}]", fmt::join(model.layers, ",")));
  } else {
    const bool gpt2 = model.model_type == "gpt2";
    const bool groups_heads = !gpt2 && model.model_type != "bert";
    for (const char* name : {"n_embd", "n_layer", "n_head"}) {
      set(fmt::format("model.{}", name), "null");
    }
    set("model.hidden_size", model.hidden_size);
    set("model.num_hidden_layers", model.num_hidden_layers);
    set("model.num_attention_heads", model.num_attention_heads);
    if (groups_heads) set("model.num_key_value_heads", model.num_key_value_heads);
    set(gpt2 ? "model.n_inner" : "model.intermediate_size", model.intermediate_size);
  }
  set("zero_optimization.stage", found.stage);
  set("zero_optimization.shard_group_size", 0);
  const bool by_memory = found.stage > 0 && !found.sizes.empty();
  set("placement.shards", by_memory ? "\"memory\"" : "\"even\"");
  set("placement.batch", "\"even\"");
  set("train_micro_batch_size_per_gpu", run.batch.micro);
  set("train_batch_size", run.batch.micro * found.ranks);
  set("gradient_accumulation_steps", "null");
  return changes;
}

bool are_of_ranks(std::span<const std::int64_t> sizes, int ranks) {
  const bool differ = std::any_of(sizes.begin(), sizes.end(),
                                  [&](std::int64_t size) { return size != sizes.front(); });
  return differ && sizes.size() == static_cast<std::size_t>(ranks);
}

std::vector<LargestModel> find_largest_models(const RunConfig& run, int most_ranks,
                                              std::span<const std::int64_t> sizes,
                                              DeviceKind kind) {
  std::vector<DeviceMemory> worlds;
  if (are_of_ranks(sizes, most_ranks)) {
    worlds.push_back({{sizes.begin(), sizes.end()}, most_ranks, kind});
  } else {
    for (auto size = sizes.begin(); size != sizes.end(); ++size) {
      if (std::find(sizes.begin(), size, *size) != size) continue;
      for (int ranks = 1; ranks < most_ranks; ranks *= 2) worlds.push_back({{*size}, ranks, kind});
      worlds.push_back({{*size}, most_ranks, kind});
    }
  }
  std::vector<LargestModel> found;
  for (const DeviceMemory& memory : worlds) {
    for (int stage = 0; stage < kStages; ++stage) {
      found.push_back(find_largest_model(run, memory, stage));
    }
  }
  return found;
}

}  // namespace sherd
