#include "runtime/config/json_schema.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/config/json.h"
#include "runtime/config/show.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

JsonValue json_list(std::vector<JsonValue> items) {
  JsonValue list;
  list.kind = JsonValue::Kind::array;
  list.items = std::move(items);
  return list;
}

JsonValue whole_or_real(double value) {
  return std::trunc(value) == value && std::abs(value) < 1e15
             ? json_of(static_cast<std::int64_t>(value))
             : json_of(value);
}

JsonValue typed(const char* name) {
  JsonValue type = json_object();
  set_member(type, "type", json_of(name));
  return type;
}

JsonValue numeric(const SchemaKey& key, const char* name) {
  JsonValue type = typed(name);
  if (std::isfinite(key.min)) set_member(type, "minimum", whole_or_real(key.min));
  if (std::isfinite(key.max)) set_member(type, "maximum", whole_or_real(key.max));
  return type;
}

JsonValue list_of(JsonValue item) {
  JsonValue type = typed("array");
  set_member(type, "items", std::move(item));
  return type;
}

JsonValue words(std::string_view choices) {
  std::vector<JsonValue> items;
  for (const std::string& choice : split_choices(choices)) {
    items.push_back(json_of(std::string_view(choice)));
  }
  JsonValue type = json_object();
  set_member(type, "enum", json_list(std::move(items)));
  return type;
}

JsonValue type_of(const SchemaKey& key) {
  switch (key.type) {
    case ValueType::boolean:
      return typed("boolean");
    case ValueType::integer:
      return numeric(key, "integer");
    case ValueType::number:
      return numeric(key, "number");
    case ValueType::string:
      return key.choices.empty() ? typed("string") : words(key.choices);
    case ValueType::integers:
      return list_of(numeric(key, "integer"));
    case ValueType::numbers:
      return list_of(numeric(key, "number"));
    case ValueType::strings:
      return list_of(typed("string"));
    case ValueType::weights: {
      JsonValue type = json_object();
      set_member(type, "anyOf", json_list({words(key.choices), list_of(numeric(key, "number"))}));
      return type;
    }
    case ValueType::any:
      break;
  }
  return json_object();
}

std::string description(const SchemaKey& key) {
  std::string text(key.meaning);
  if (!key.otherwise.empty()) text += fmt::format(" (not given: {})", key.otherwise);
  if (key.fate == Fate::own || key.fate == Fate::honoured) return text;
  const std::string but = key.agrees.empty() ? "" : fmt::format(" unless {}", key.agrees);
  return fmt::format("{}{}{}{}: {}", text, text.empty() ? "" : "; ", name_of(key.fate), but,
                     key.note);
}

JsonValue property(const SchemaKey& key) {
  JsonValue value = type_of(key);
  if (key.type != ValueType::any) {
    // "auto" and null both leave a key not given.
    JsonValue none = json_object();
    set_member(none, "enum", json_list({json_of("auto"), JsonValue{}}));
    JsonValue either = json_object();
    set_member(either, "anyOf", json_list({std::move(value), std::move(none)}));
    value = std::move(either);
  }
  set_member(value, "description", json_of(std::string_view(description(key))));
  if (!key.standard.empty()) {
    set_member(value, "default", parse_json(key.standard, std::string(key.path)));
  }
  return value;
}

JsonValue section(const Schema& schema, std::string_view path) {
  JsonValue properties = json_object();
  for (const std::string& name : schema.children(path)) {
    const std::string child = member_path(path, name);
    const SchemaKey* key = schema.find(child);
    set_member(properties, name, key != nullptr ? property(*key) : section(schema, child));
  }
  JsonValue object = typed("object");
  set_member(object, "properties", std::move(properties));
  set_member(object, "additionalProperties", json_of(false));
  return object;
}

}  // namespace

std::string json_schema(const Schema& schema) {
  JsonValue document = json_object();
  set_member(document, "$schema", json_of("https://json-schema.org/draft/2020-12/schema"));
  set_member(document, "title", json_of("Sherd run file"));
  JsonValue root = section(schema, "");
  for (JsonMember& member : root.members) {
    if (member.key == "properties") {
      JsonValue origins = typed("object");
      set_member(origins, "description", json_of("where a resolved file's values come from"));
      set_member(member.value, kOriginsKey, std::move(origins));
    }
    set_member(document, member.key, std::move(member.value));
  }
  return write_json(document, 2) + "\n";
}

}  // namespace sherd
