#include "runtime/config/check.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kListedKeys = 12;

std::string_view name_of_kind(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "true or false";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "a list";
    case Kind::object:
      return "a section";
  }
  return "?";
}

/// What was given, cut to a line.
std::string shown(const JsonValue& value) {
  constexpr std::size_t kMost = 60;
  std::string text = write_json(value);
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return text;
}

[[noreturn]] void fail(const SchemaKey& key, const JsonValue& value, const std::string& hint = {}) {
  const bool obvious = value.kind == Kind::number || value.kind == Kind::boolean;
  throw ArgumentError(fmt::format(
      "{}: {}: got {}{}, expected {}{}", to_string(value.place), key.path, shown(value),
      obvious ? "" : fmt::format(" ({})", name_of_kind(value.kind)), expectation(key), hint));
}

std::string bound(double value) {
  return std::abs(value) < 1e15 ? fmt::format("{}", value) : fmt::format("{:g}", value);
}

void check_number(const SchemaKey& key, const JsonValue& value, bool integer) {
  if (value.kind != Kind::number) fail(key, value);
  if (value.number < key.min) fail(key, value, "; the nearest is " + bound(key.min));
  if (value.number > key.max) fail(key, value, "; the nearest is " + bound(key.max));
  if (!integer || value.integer) return;
  if (std::trunc(value.number) == value.number) fail(key, value, " below 2^63");
  fail(key, value,
       fmt::format("; the nearest is {:.0f}", std::max(key.min, std::round(value.number))));
}

void check_list(const SchemaKey& key, const JsonValue& value, bool integer) {
  if (value.kind != Kind::array) fail(key, value);
  for (const JsonValue& item : value.items) check_number(key, item, integer);
}

void check_strings(const SchemaKey& key, const JsonValue& value) {
  if (value.kind != Kind::array) fail(key, value);
  for (const JsonValue& item : value.items) {
    if (item.kind != Kind::string) fail(key, item);
  }
}

JsonValue checked_choice(const SchemaKey& key, JsonValue value) {
  if (value.kind != Kind::string) fail(key, value);
  if (key.choices.empty()) return value;
  const std::vector<std::string> choices = split_choices(key.choices);
  for (const std::string& choice : choices) {
    if (edit_distance(choice, value.text) != 0) continue;  // equal but for case
    value.text = choice;
    return value;
  }
  const std::string near = nearest(value.text, choices);
  std::string hint = near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near);
  if (near.empty() && !key.others.empty()) hint = fmt::format("; {}", key.others);
  fail(key, value, hint);
}

/// Full paths of keys called `name` anywhere in the schema.
std::string elsewhere(const Schema& schema, std::string_view name) {
  for (const SchemaKey& key : schema.keys()) {
    if (last_name(key.path) == name) return std::string(key.path);
  }
  return {};
}

}  // namespace

JsonValue checked(const SchemaKey& key, const JsonValue& value) {
  switch (key.type) {
    case ValueType::boolean:
      if (value.kind != Kind::boolean) fail(key, value);
      break;
    case ValueType::integer:
      check_number(key, value, true);
      break;
    case ValueType::number:
      check_number(key, value, false);
      break;
    case ValueType::string:
      return checked_choice(key, value);
    case ValueType::integers:
      check_list(key, value, true);
      break;
    case ValueType::numbers:
      check_list(key, value, false);
      break;
    case ValueType::strings:
      check_strings(key, value);
      break;
    case ValueType::weights:
      if (value.kind == Kind::string) return checked_choice(key, value);
      check_list(key, value, false);
      break;
    case ValueType::any:
      break;
  }
  return value;
}

std::string expectation(const SchemaKey& key) {
  const std::string choices = "one of " + joined(split_choices(key.choices));
  if (key.type == ValueType::weights) return choices + ", or a list of weights, one per rank";
  if (!key.choices.empty()) return choices;
  std::string text(name_of(key.type));
  const bool low = std::isfinite(key.min), high = std::isfinite(key.max);
  if (low && high) return fmt::format("{} from {} to {}", text, bound(key.min), bound(key.max));
  if (low) return fmt::format("{} of at least {}", text, bound(key.min));
  if (high) return fmt::format("{} of at most {}", text, bound(key.max));
  return text;
}

bool agrees(const SchemaKey& key, const JsonValue& value) {
  for (const std::string& text : split_choices(key.agrees)) {
    if (same_json(parse_json(text, "schema"), value)) return true;
  }
  if (key.type != ValueType::any || value.kind != Kind::object) return false;
  const JsonValue* enabled = value.find("enabled");
  return enabled != nullptr ? same_json(*enabled, json_of(false)) : value.members.empty();
}

std::string unknown_key(const Schema& schema, std::string_view section, std::string_view name) {
  const std::vector<std::string>& keys = schema.children(section);
  std::string text = fmt::format("unknown key \"{}\"", name);
  if (!section.empty()) text += fmt::format(" in {}", section);
  if (const std::string near = nearest(name, keys); !near.empty()) {
    return text + fmt::format("; did you mean \"{}\"?", near);
  }
  if (const std::string path = elsewhere(schema, name); !path.empty()) {
    return text + fmt::format("; did you mean {}?", path);
  }
  if (keys.size() <= kListedKeys) return text + fmt::format("; it has {}", joined(keys));
  return text + "; `sherd config schema` lists the keys";
}

std::string no_section(const Schema& schema, std::string_view section, const JsonValue& value) {
  const std::vector<std::string>& keys = schema.children(section);
  const std::string text = fmt::format("got {}, expected a section", shown(value));
  if (keys.size() <= kListedKeys) return text + fmt::format(" with {}", joined(keys));
  return text + ", {…}; `sherd config schema` lists its keys";
}

}  // namespace sherd
