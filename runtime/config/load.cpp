#include "runtime/config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "core/counted.h"
#include "core/error.h"
#include "runtime/config/show.h"

namespace sherd {
namespace {

constexpr std::string_view kBatchKeys[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps"};

void remove_at(JsonValue& object, std::string_view path) {
  const std::string_view head = path.substr(0, path.find('.'));
  for (JsonMember& member : object.members) {
    if (member.key != head) continue;
    if (head.size() < path.size()) {
      remove_at(member.value, path.substr(head.size() + 1));
    } else {
      std::erase_if(object.members, [&](const JsonMember& m) { return m.key == head; });
    }
    return;
  }
}

const JsonValue* value_at(const JsonValue& object, std::string_view path) {
  const JsonValue* value = &object;
  while (value != nullptr && !path.empty()) {
    const auto dot = path.find('.');
    value = value->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return value;
}

/// A resolved file says what it derived: those values are derived anew, unless someone changed
/// them.
void drop_derived(JsonValue& document) {
  const JsonValue* origins = document.find(kOriginsKey);
  if (origins == nullptr) return;
  const JsonValue kept = *origins;
  remove_at(document, kOriginsKey);
  for (const JsonMember& member : kept.members) {
    const JsonValue* derived = member.value.find("value");
    const JsonValue* now = value_at(document, member.key);
    if (derived != nullptr && now != nullptr && same_json(*derived, *now)) {
      remove_at(document, member.key);
    }
  }
}

void add_notes(LoadedConfig& config) {
  config.notes = config.settings.warnings();
  for (const KeyFate& fate : config.deepspeed) {
    const bool silent = fate.automatic || fate.fate == Fate::honoured;
    if (!silent) config.notes.push_back(to_string(fate));
  }
}

LoadedConfig load_document(JsonValue document, const std::vector<std::string>& overrides,
                           const std::string& deepspeed_path) {
  LoadedConfig config;
  const std::string name = std::filesystem::path(document.place.source).stem().string();
  drop_derived(document);
  config.settings.add(document, Settings::Source::run);
  if (!deepspeed_path.empty()) {
    config.settings.add(read_json_file(deepspeed_path), Settings::Source::deepspeed);
  }
  for (const std::string& assignment : overrides) config.settings.set(assignment);
  config.settings.default_to("output", json_of(std::string_view("runs/" + name)));
  config.run = resolve_run(config.settings);
  config.deepspeed = deepspeed_fates(config.settings);
  add_notes(config);
  return config;
}

std::optional<std::int64_t> given(const Settings& settings, std::string_view path) {
  if (!settings.given(path)) return std::nullopt;
  return settings.find(path)->value.integer;
}

/// Where the batch keys were given, for an error about all of them.
std::string batch_places(const Settings& settings) {
  std::string text;
  for (const std::string_view key : kBatchKeys) {
    if (!settings.given(key)) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(settings.find(key)->origin));
  }
  return text;
}

void check_weights(const Settings& settings, std::string_view path,
                   const std::vector<double>& weights, int world) {
  if (weights.empty() || weights.size() == static_cast<std::size_t>(world)) return;
  settings.fail(path, fmt::format("has {} for {}; expected one per rank",
                                  counted(std::ssize(weights), "weight"), counted(world, "rank")));
}

void check_memory(const Settings& settings, std::size_t sizes, int world) {
  if (sizes <= 1 || sizes == static_cast<std::size_t>(world)) return;
  settings.fail(
      "placement.memory",
      fmt::format("has {} for {}; expected one for all, or one per rank",
                  counted(static_cast<std::int64_t>(sizes), "size"), counted(world, "rank")));
}

void check_group(const Settings& settings, int group, int world) {
  if (group == 0 || world % group == 0) return;
  std::vector<int> divisors;
  for (int size = 1; size <= world; ++size) {
    if (world % size == 0) divisors.push_back(size);
  }
  settings.fail("zero_optimization.shard_group_size",
                fmt::format("groups of {} don't divide {}; expected one of {}", group,
                            counted(world, "rank"), fmt::join(divisors, ", ")));
}

/// Records the batch keys that were not given, with what they follow from.
void record_batch(Settings& settings, const BatchConfig& batch, const std::string& why) {
  const std::int64_t values[] = {batch.train, batch.micro, batch.accumulation};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!settings.given(kBatchKeys[i])) settings.derive(kBatchKeys[i], json_of(values[i]), why);
  }
}

std::string given_batch_keys(const Settings& settings) {
  std::vector<std::string> keys;
  for (const std::string_view key : kBatchKeys) {
    if (settings.given(key)) keys.emplace_back(key);
  }
  return fmt::format("{}", fmt::join(keys, " and "));
}

void add_batch_notes(LoadedConfig& config, const BatchKeys& keys, const MicroBatchCut& cut) {
  const std::string uneven = uneven_batch_note(cut);
  if (!uneven.empty()) config.notes.push_back(uneven);
  const std::int64_t rounds = cut.rounds();
  if (!keys.accumulation || *keys.accumulation == rounds) return;
  config.notes.push_back(
      fmt::format("gradient_accumulation_steps is {}, but the {} micro-batches of a step give a "
                  "rank {} at most",
                  *keys.accumulation, cut.count, rounds));
}

}  // namespace

LoadedConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides,
                             const std::string& deepspeed_path) {
  return load_document(read_json_file(path), overrides, deepspeed_path);
}

LoadedConfig parse_run_config(std::string_view text, const std::string& source,
                              const std::vector<std::string>& overrides,
                              const std::string& deepspeed_path) {
  return load_document(parse_json(text, source), overrides, deepspeed_path);
}

void resolve_for_world(LoadedConfig& config, int world) {
  require(world > 0, "expected at least one rank, got {}", world);
  Settings& settings = config.settings;
  RunConfig& run = config.run;
  check_weights(settings, "placement.shards", run.placement.shard_weights, world);
  check_weights(settings, "placement.batch", run.placement.batch_weights, world);
  check_weights(settings, "placement.speed", run.placement.speed, world);
  check_memory(settings, run.placement.memory.size(), world);
  check_group(settings, run.zero.shard_group_size, world);
  const BatchKeys keys{given(settings, kBatchKeys[0]), given(settings, kBatchKeys[1]),
                       given(settings, kBatchKeys[2])};
  try {
    run.batch = complete_batch(keys, world, run.placement.batch_weights);
  } catch (const ArgumentError& error) {
    const std::string places = batch_places(settings);
    throw ArgumentError(places.empty() ? settings.file() + ": " + error.what()
                                       : places + ": " + error.what());
  }
  record_batch(settings, run.batch,
               fmt::format("{} over {}", given_batch_keys(settings), counted(world, "rank")));
  run.placement.most_samples = keys.micro;
  run.placement.fewest_rounds = keys.accumulation.value_or(1);
  add_notes(config);
  if (run.placement.batch != PlaceBy::weights) return;  // who carries what is found with the memory
  add_batch_notes(config, keys, micro_batches_of(run, world));
}

void record_placement(LoadedConfig& config, std::span<const std::int64_t> memory) {
  Settings& settings = config.settings;
  const PlacementConfig& placement = config.run.placement;
  const int world = static_cast<int>(memory.size());
  if (placement.memory.empty()) {
    JsonValue sizes;
    sizes.kind = JsonValue::Kind::array;
    for (const std::int64_t bytes : memory) sizes.items.push_back(json_of(std::to_string(bytes)));
    settings.derive("placement.memory", sizes, "what ranks had free");
  }
  if (placement.rank_samples.empty()) return;
  const MicroBatchCut cut = micro_batches_of(config.run, world);
  std::int64_t most = 0;
  for (int rank = 0; rank < world; ++rank) most = std::max(most, cut.largest_of_rank(rank));
  const BatchConfig found{cut.train, most, cut.rounds()};
  record_batch(settings, found, "placement.batch and what ranks may take");
  if (const std::string uneven = uneven_batch_note(cut); !uneven.empty()) {
    config.notes.push_back(uneven);
  }
}

void require_trainable(const LoadedConfig& config) {
  const RunConfig& run = config.run;
  if (run.steps < 1) config.settings.fail("steps", "training needs at least 1");
  if (run.data.train.empty() && run.data.format != DataConfig::Format::synthetic) {
    config.settings.fail("data.train", "is missing: the file to train on");
  }
  try {
    validate(run.schedule);
  } catch (const ArgumentError& error) {
    config.settings.fail("scheduler", error.what());
  }
}

ModelConfig load_model_config(const std::string& folder, ModelUse use) {
  Settings settings;
  JsonValue document = json_object();
  JsonValue model = json_object();
  document.place.source = folder;
  JsonValue path = json_of(std::string_view(folder));
  path.place.source = folder;
  set_member(model, "path", path);
  set_member(document, "model", model);
  settings.add(document, Settings::Source::run);
  return resolve_model(settings, use);
}

std::vector<KeyFate> import_deepspeed(const std::string& path) {
  Settings settings;
  settings.add(read_json_file(path), Settings::Source::deepspeed);
  return deepspeed_fates(settings);
}

}  // namespace sherd
