#include "apps/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/quantity.h"
#include "apps/rates.h"
#include "models/build.h"
#include "runtime/engine_options.h"
#include "runtime/placement.h"

namespace sherd {
namespace {

constexpr std::size_t kRefined = 12;  // combinations whose details are searched
constexpr std::size_t kShown = 5;

/// What is searched. All of it is written down, so that a run file says what was meant.
struct Choice {
  int stage = 0;
  int group = 0;  ///< 0: all ranks
  PlaceBy shards = PlaceBy::weights;
  PlaceBy batch = PlaceBy::weights;
  std::int64_t micro = 1;  ///< for a batch that is even
  bool recompute = false;
  std::int64_t recompute_units = 0;
  int prefetch = 1;
  int gather_burst = 1;
  int reduce_burst = 1;
  bool reshard = true;

  bool operator==(const Choice&) const = default;
};

const char* word_of(PlaceBy by) {
  switch (by) {
    case PlaceBy::memory:
      return "\"memory\"";
    case PlaceBy::fill:
      return "\"fill\"";
    case PlaceBy::speed:
      return "\"speed\"";
    case PlaceBy::weights:
      return "\"even\"";
  }
  return "";
}

std::vector<std::string> changes_of(const Choice& choice, std::int64_t train,
                                    const std::vector<double>& speeds) {
  std::vector<std::string> changes;
  const auto set = [&](std::string_view key, const auto& value) {
    changes.push_back(fmt::format("{}={}", key, value));
  };
  set("zero_optimization.stage", choice.stage);
  set("zero_optimization.shard_group_size", choice.group);
  set("zero_optimization.prefetch_units", choice.prefetch);
  set("zero_optimization.gather_burst", choice.gather_burst);
  set("zero_optimization.reduce_burst", choice.reduce_burst);
  set("zero_optimization.reshard_after_forward", choice.reshard);
  set("placement.shards", word_of(choice.shards));
  set("placement.batch", word_of(choice.batch));
  const bool by_speed = choice.batch == PlaceBy::speed;
  set("placement.speed", by_speed ? fmt::format("[{:.4g}]", fmt::join(speeds, ",")) : "null");
  set("activation_checkpointing.enabled", choice.recompute);
  set("activation_checkpointing.units", choice.recompute_units);
  set("train_batch_size", train);
  set("gradient_accumulation_steps", "null");
  if (choice.batch != PlaceBy::weights) {
    set("train_micro_batch_size_per_gpu", "null");
  } else {
    set("train_micro_batch_size_per_gpu", choice.micro);
  }
  return changes;
}

std::string describe(const Choice& choice, const RunPlan& plan) {
  std::string text = fmt::format("stage {}", choice.stage);
  if (choice.group > 0) text += fmt::format(", groups of {}", choice.group);
  if (choice.shards == PlaceBy::memory) text += ", shards by memory";
  if (choice.shards == PlaceBy::fill) text += ", ranks filled in order";
  text += fmt::format(", micro-batch {}{}", plan.largest_micro_batch.samples,
                      choice.batch == PlaceBy::memory  ? " and less by memory"
                      : choice.batch == PlaceBy::speed ? " and less by speed"
                                                       : "");
  if (choice.recompute_units > 0) {
    text += fmt::format(", {} units run again", choice.recompute_units);
  } else if (choice.recompute) {
    text += ", all run again";
  }
  if (choice.stage > 0) text += fmt::format(", prefetch {}", choice.prefetch);
  if (choice.gather_burst > 1) text += fmt::format(", gathers by {}", choice.gather_burst);
  if (choice.reduce_burst > 1) text += fmt::format(", reductions by {}", choice.reduce_burst);
  return text + (choice.reshard ? "" : ", kept after forward");
}

RunConfig chosen(RunConfig run, const Choice& choice) {
  run.zero.stage = choice.stage;
  run.zero.shard_group_size = choice.group;
  run.zero.prefetch_units = choice.prefetch;
  run.zero.prefetch_elements.reset();
  run.zero.gather_burst = choice.gather_burst;
  run.zero.reduce_burst = choice.reduce_burst;
  run.zero.reduce_bucket_elements.reset();
  run.zero.reshard_after_forward = choice.reshard;
  run.placement = {};
  run.placement.shards = choice.shards;
  run.placement.batch = choice.batch;
  run.batch.micro = choice.micro;
  run.recompute = choice.recompute;
  run.recompute_units = choice.recompute_units;
  return run;
}

class Search {
 public:
  Search(const RunConfig& run, const DeviceMemory& memory, std::span<const Rates> rates)
      : run_(run),
        world_(memory.world()),
        memory_(memory),
        rates_(rates),
        model_(build_model(run.model)),
        speeds_(find_speeds()) {}

  FitSearch run() {
    for (int stage = 0; stage <= 3; ++stage) {
      for (const int group : groups_of(stage)) try_stage(stage, group);
    }
    sort_fits();
    const std::vector<Choice> coarse = choices_;
    for (std::size_t i = 0; i < std::min(kRefined, coarse.size()); ++i) refine(coarse[i]);
    sort_fits();
    FitSearch result;
    result.tried = tried_;
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < fits_.size() && shown.size() < kShown; ++i) {
      const auto same = [&](std::size_t other) { return adds_nothing(i, other); };
      if (std::none_of(shown.begin(), shown.end(), same)) shown.push_back(i);
    }
    for (const std::size_t i : shown) result.best.push_back(fits_[i]);
    return result;
  }

 private:
  /// A group of one rank has nothing to share: that is stage 0.
  std::vector<int> groups_of(int stage) const {
    if (stage == 0) return {0};
    std::vector<int> groups;
    for (int group = 2; group < world_; ++group) {
      if (world_ % group == 0) groups.push_back(group);
    }
    if (world_ > 1) groups.push_back(0);
    return groups;
  }

  /// Samples a second of each rank, one at a time; four digits, as they are written down.
  std::vector<double> find_speeds() const {
    RunConfig even = run_;
    even.placement = {};
    const EngineOptions options = engine_options(even, model_, world_);
    const BatchShape one{1, options.largest_micro_batch.sequence};
    const ShardLayout layout(model_.units, layout_options(options, world_));
    const PlanInput input = plan_input(model_, layout, one, options.plan);
    const std::vector<UnitWork> work = unit_work(model_, input, one, options.plan);
    std::vector<double> speeds;
    for (const Rates& rates : rates_) {
      speeds.push_back(std::stod(fmt::format("{:.4g}", 1.0 / forward_seconds(work, rates))));
    }
    return speeds;
  }

  std::vector<PlaceBy> shard_placements(int stage) const {
    if (stage == 0 || memory_.is_same_for_all()) return {PlaceBy::weights};
    return {PlaceBy::weights, PlaceBy::memory, PlaceBy::fill};
  }

  std::vector<PlaceBy> batch_placements() const {
    std::vector<PlaceBy> found = {PlaceBy::weights};
    if (!memory_.is_same_for_all()) found.push_back(PlaceBy::memory);
    if (rates_.size() > 1) found.push_back(PlaceBy::speed);
    return found;
  }

  void try_stage(int stage, int group) {
    for (const PlaceBy shards : shard_placements(stage)) {
      for (const PlaceBy batch : batch_placements()) {
        Choice choice{.stage = stage, .group = group, .shards = shards, .batch = batch};
        if (batch == PlaceBy::weights) {
          try_micro_batches(choice);
        } else {
          try_recompute(choice);
        }
      }
    }
  }

  /// Larger micro-batches only while smaller ones fit.
  void try_micro_batches(Choice choice) {
    const std::int64_t largest = (run_.batch.train - 1) / world_ + 1;
    for (std::int64_t micro = 1;; micro = std::min(2 * micro, largest)) {
      choice.micro = micro;
      if (!try_recompute(choice) || micro == largest) return;
    }
  }

  /// Runs again as little as fits, with gathers ahead or, to run less again, without.
  bool try_recompute(Choice choice) {
    if (attempt(choice)) return true;
    const bool ahead = run_again(choice);
    if (choice.stage < 3) return ahead;
    choice.prefetch = 0;
    return attempt(choice) || run_again(choice) || ahead;
  }

  /// The fewest units that fit, from the first: see design.md.
  bool run_again(Choice choice) {
    choice.recompute = true;
    if (!attempt(choice)) return false;
    const auto units = static_cast<std::int64_t>(model_.units.size());
    std::int64_t low = 1;
    for (std::int64_t high = units; low < high;) {
      choice.recompute_units = low + (high - low) / 2;
      if (attempt(choice)) {
        high = choice.recompute_units;
      } else {
        low = choice.recompute_units + 1;
      }
    }
    return true;
  }

  void refine(const Choice& choice) {
    if (choice.stage == 0) return;
    for (const int prefetch : {0, 1, 2, 4}) {
      for (const bool reshard : {true, false}) {
        Choice other = choice;
        other.prefetch = prefetch;
        other.reshard = reshard;
        const bool known = prefetch == choice.prefetch && reshard == choice.reshard;
        if (!known && (reshard || choice.stage == 3)) attempt(other);
      }
    }
    for (const int burst : {2, 4}) {
      Choice other = choice;
      other.gather_burst = burst;
      attempt(other);
      other.gather_burst = 1;
      other.reduce_burst = burst;
      attempt(other);
    }
  }

  /// Plans it, and keeps it if it fits.
  bool attempt(const Choice& choice) {
    ++tried_;
    RunConfig run = chosen(run_, choice);
    run.placement.speed = speeds_;
    place_run(run, model_, world_, memory_.per_rank());
    Fit fit;
    fit.plan = plan_run(run, world_, {nullptr, rates_});
    if (!memory_.holds(fit.plan)) return false;
    fit.headroom_bytes = INT64_MAX;
    for (int rank = 0; rank < world_; ++rank) {
      const std::int64_t left = memory_.of_rank(rank) - fit.plan.needs_of(rank).peak_bytes;
      fit.headroom_bytes = std::min(fit.headroom_bytes, left);
    }
    const double tokens =
        static_cast<double>(run_.batch.train * fit.plan.largest_micro_batch.sequence);
    fit.tokens_per_s = tokens / fit.plan.time.seconds;
    fit.description = describe(choice, fit.plan);
    fit.changes = changes_of(choice, run_.batch.train, speeds_);
    fits_.push_back(std::move(fit));
    choices_.push_back(choice);
    return true;
  }

  /// Speeds that a model can't tell apart have the same number.
  std::int64_t speed(std::size_t i) const {
    constexpr double kSame = 0.005;
    return std::llround(std::log(fits_[i].tokens_per_s) / kSame);
  }

  /// Whether a fit differs from a better one in details alone that do not make it faster.
  bool adds_nothing(std::size_t i, std::size_t better) const {
    Choice details = choices_[i];
    const Choice& shown = choices_[better];
    details.prefetch = shown.prefetch;
    details.gather_burst = shown.gather_burst;
    details.reduce_burst = shown.reduce_burst;
    details.reshard = shown.reshard;
    return details == shown;
  }

  /// Fastest first; of those as good as equally fast, the one that takes least.
  void sort_fits() {
    std::vector<std::size_t> order(fits_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (speed(a) != speed(b)) return speed(a) > speed(b);
      return fits_[a].headroom_bytes > fits_[b].headroom_bytes;
    });
    std::vector<Fit> fits;
    std::vector<Choice> choices;
    for (const std::size_t i : order) {
      fits.push_back(std::move(fits_[i]));
      choices.push_back(choices_[i]);
    }
    fits_ = std::move(fits);
    choices_ = std::move(choices);
  }

  const RunConfig& run_;
  int world_;
  const DeviceMemory& memory_;
  std::span<const Rates> rates_;  // of all ranks, or of each
  Model model_;
  std::vector<double> speeds_;  // as many
  std::vector<Fit> fits_;
  std::vector<Choice> choices_;  // of the fits, in their order
  int tried_ = 0;
};

SmallestRun smallest_run_at(int stage, const RunConfig& run, const DeviceMemory& memory) {
  const Choice least{.stage = stage,
                     .shards = stage > 0 ? PlaceBy::memory : PlaceBy::weights,
                     .micro = 1,
                     .recompute = true,
                     .prefetch = 0};
  SmallestRun smallest{chosen(run, least), {}, {}, 0};
  place_run(smallest.run, build_model(run.model), memory.world(), memory.per_rank());
  smallest.plan = plan_run(smallest.run, memory.world());
  smallest.description = describe(least, smallest.plan);
  smallest.lacking_bytes = memory.lacking_bytes(smallest.plan);
  return smallest;
}

}  // namespace

/// The highest stage is not always the smallest: units are gathered whole.
SmallestRun smallest_run(const RunConfig& run, const DeviceMemory& memory) {
  if (memory.world() == 1) return smallest_run_at(0, run, memory);
  SmallestRun smallest = smallest_run_at(3, run, memory);
  for (const int stage : {2, 1}) {
    SmallestRun other = smallest_run_at(stage, run, memory);
    if (other.lacking_bytes < smallest.lacking_bytes) smallest = std::move(other);
  }
  return smallest;
}

std::optional<Fit> find_any_fit(const RunConfig& run, const DeviceMemory& memory) {
  if (smallest_run(run, memory).lacking_bytes > 0) return std::nullopt;
  const DeviceChoice device =
      memory.kind() == DeviceKind::cuda ? DeviceChoice::cuda : DeviceChoice::cpu;
  const auto rates = rates_for(usual_rates(device), run.compute, memory.world());
  FitSearch search = find_fits(run, memory, rates);
  if (search.best.empty()) return std::nullopt;
  return std::move(search.best.front());
}

FitSearch find_fits(const RunConfig& run, const DeviceMemory& memory,
                    std::span<const Rates> rates) {
  return Search(run, memory, rates).run();
}

}  // namespace sherd
