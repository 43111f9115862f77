#include "runtime/config/show.h"

#include <fmt/format.h>

#include <algorithm>

namespace sherd {
namespace {

/// Keys without effect are not repeated: some hold paths and keys of other services.
bool is_shown(const SchemaKey& key, const Setting& setting) {
  const bool idle = is_deepspeed(key) && key.fate == Fate::no_effect;
  return !idle || setting.origin.kind != Origin::Kind::given;
}

template <class F>
void for_each_shown(const LoadedConfig& config, F&& f) {
  for (const SchemaKey& key : config.settings.schema().keys()) {
    const Setting* setting = config.settings.find(key.path);
    if (setting != nullptr && is_shown(key, *setting)) f(key, *setting);
  }
}

void insert_at(JsonValue& object, std::string_view path, const JsonValue& value) {
  const auto dot = path.find('.');
  const std::string_view head = path.substr(0, dot);
  if (dot == std::string_view::npos) {
    set_member(object, head, value);
    return;
  }
  if (object.find(head) == nullptr) set_member(object, head, json_object());
  for (JsonMember& member : object.members) {
    if (member.key == head) insert_at(member.value, path.substr(dot + 1), value);
  }
}

JsonValue origin_json(const Setting& setting) {
  JsonValue text = json_of(to_string(setting.origin));
  if (setting.origin.kind != Origin::Kind::derived) return text;
  JsonValue origin = json_object();
  set_member(origin, "origin", text);
  set_member(origin, "value", setting.value);
  return origin;
}

constexpr std::string_view kNeedRanks[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps"};

}  // namespace

std::string config_table(const LoadedConfig& config) {
  std::size_t path_width = 0, value_width = 0;
  for_each_shown(config, [&](const SchemaKey& key, const Setting& setting) {
    path_width = std::max(path_width, key.path.size());
    value_width = std::max(value_width, write_json(setting.value).size());
  });
  value_width = std::min<std::size_t>(value_width, 40);
  std::string text;
  for_each_shown(config, [&](const SchemaKey& key, const Setting& setting) {
    text += fmt::format("{:<{}}  {:<{}}  {}\n", key.path, path_width, write_json(setting.value),
                        value_width, to_string(setting.origin));
  });
  for (const std::string_view path : kNeedRanks) {
    if (config.settings.find(path) != nullptr) continue;
    text += fmt::format("{:<{}}  {:<{}}  follows from the number of ranks\n", path, path_width, "?",
                        value_width);
  }
  return text;
}

std::string config_json(const LoadedConfig& config) {
  JsonValue document = json_object();
  JsonValue origins = json_object();
  for_each_shown(config, [&](const SchemaKey& key, const Setting& setting) {
    insert_at(document, key.path, setting.value);
    set_member(origins, key.path, origin_json(setting));
  });
  set_member(document, kOriginsKey, origins);
  return write_json(document, 2) + "\n";
}

}  // namespace sherd
