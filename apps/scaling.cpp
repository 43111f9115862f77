#include "apps/scaling.h"

#include <algorithm>
#include <functional>

#include "apps/run_plan.h"

namespace sherd {
namespace {

constexpr int kStages = 4;
constexpr std::int64_t kMlpSteps = 8;
constexpr std::int64_t kWidest = std::int64_t{1} << 12;

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
  ScalingSearch(const RunConfig& run, int ranks, std::int64_t memory_bytes, int stage)
      : run_(run), model_(run.model) {
    found_.ranks = ranks;
    found_.memory_bytes = memory_bytes;
    found_.stage = stage;
    run_.zero.stage = stage;
    run_.zero.shard_group_size = 0;
    run_.placement = {};
    run_.batch.train = run_.batch.micro * ranks;
    run_.model.path.clear();
  }

  LargestModel run() {
    const std::int64_t steps = width_steps(model_);
    const bool deepens = !is_mlp(model_);
    const std::int64_t layers =
        deepens ? largest_that(1, kMostLayers, [&](std::int64_t l) { return fits(l, steps); }) : 1;
    const bool narrows = layers == 0 || (!deepens && !fits(1, steps));
    if (narrows) {
      widen(1, 1, steps - 1);
    } else if (!deepens || layers == kMostLayers) {
      widen(layers, steps, kWidest * steps);
    }
    return found_;
  }

 private:
  void widen(std::int64_t layers, std::int64_t from, std::int64_t to) {
    largest_that(from, to, [&](std::int64_t width) { return fits(layers, width); });
  }

  /// Remembers the largest that does.
  bool fits(std::int64_t layers, std::int64_t width) {
    run_.model = scaled_model(model_, layers, width);
    const RunPlan plan = plan_run(run_, found_.ranks);
    if (plan.peak_bytes() > found_.memory_bytes) return false;
    if (plan.parameters <= found_.parameters) return true;
    found_.parameters = plan.parameters;
    found_.layers = is_mlp(model_) ? static_cast<std::int64_t>(model_.layers.size()) - 1 : layers;
    found_.hidden_size =
        is_mlp(model_) ? *std::max_element(run_.model.layers.begin() + 1, run_.model.layers.end())
                       : run_.model.hidden_size;
    return true;
  }

  RunConfig run_;
  ModelConfig model_;
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

std::vector<LargestModel> find_largest_models(const RunConfig& run, int most_ranks,
                                              std::span<const std::int64_t> memories) {
  std::vector<int> worlds;
  for (int ranks = 1; ranks < most_ranks; ranks *= 2) worlds.push_back(ranks);
  worlds.push_back(most_ranks);
  std::vector<LargestModel> found;
  for (const std::int64_t memory : memories) {
    for (const int ranks : worlds) {
      for (int stage = 0; stage < kStages; ++stage) {
        found.push_back(ScalingSearch(run, ranks, memory, stage).run());
      }
    }
  }
  return found;
}

}  // namespace sherd
