#include "runtime/config/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

namespace sherd {
namespace {

nlohmann::ordered_json to_library(const JsonValue& value) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return value.boolean;
    case Kind::number:
      return value.integer ? nlohmann::ordered_json(*value.integer)
                           : nlohmann::ordered_json(value.number);
    case Kind::string:
      return value.text;
    case Kind::array: {
      auto array = nlohmann::ordered_json::array();
      for (const JsonValue& item : value.items) array.push_back(to_library(item));
      return array;
    }
    case Kind::object: {
      auto object = nlohmann::ordered_json::object();
      auto& members = object.get_ref<nlohmann::ordered_json::object_t&>();
      for (const JsonMember& member : value.members) {
        members.emplace_back(member.key, to_library(member.value));  // [] would look at all others
      }
      return object;
    }
  }
  return nullptr;
}

bool same_members(const JsonValue& a, const JsonValue& b) {
  if (a.members.size() != b.members.size()) return false;
  for (std::size_t i = 0; i < a.members.size(); ++i) {
    const JsonMember& member = a.members[i];
    const bool same_place = b.members[i].key == member.key;  // mostly: the search is the long way
    const JsonValue* other = same_place ? &b.members[i].value : b.find(member.key);
    if (other == nullptr || !same_json(member.value, *other)) return false;
  }
  return true;
}

template <class T>
JsonValue array_of(const std::vector<T>& values) {
  JsonValue array;
  array.kind = JsonValue::Kind::array;
  for (const T value : values) array.items.push_back(json_of(value));
  return array;
}

}  // namespace

std::string to_string(const Place& place) {
  if (place.line == 0) return place.source;
  return fmt::format("{}:{}:{}", place.source, place.line, place.column);
}

const JsonValue* JsonValue::find(std::string_view key) const {
  for (const JsonMember& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

JsonValue json_of(bool value) {
  JsonValue json;
  json.kind = JsonValue::Kind::boolean;
  json.boolean = value;
  return json;
}

JsonValue json_of(int value) { return json_of(static_cast<std::int64_t>(value)); }

JsonValue json_of(std::int64_t value) {
  JsonValue json;
  json.kind = JsonValue::Kind::number;
  json.number = static_cast<double>(value);
  json.integer = value;
  return json;
}

JsonValue json_of(double value) {
  JsonValue json;
  json.kind = JsonValue::Kind::number;
  json.number = value;
  return json;
}

JsonValue json_of(float value) {
  return json_of(std::strtod(fmt::format("{}", value).c_str(), nullptr));
}

JsonValue json_of(std::string_view text) {
  JsonValue json;
  json.kind = JsonValue::Kind::string;
  json.text = text;
  return json;
}

JsonValue json_of(const char* text) { return json_of(std::string_view(text)); }
JsonValue json_of(const std::vector<std::int64_t>& values) { return array_of(values); }
JsonValue json_of(const std::vector<double>& values) { return array_of(values); }

JsonValue json_object() {
  JsonValue json;
  json.kind = JsonValue::Kind::object;
  return json;
}

void add_member(JsonValue& object, std::string_view key, JsonValue value) {
  // Not push_back({…}): GCC 12 takes that temporary for uninitialized.
  JsonMember& member = object.members.emplace_back();
  member.key = key;
  member.value = std::move(value);
}

void set_member(JsonValue& object, std::string_view key, JsonValue value) {
  for (JsonMember& member : object.members) {
    if (member.key == key) {
      member.value = std::move(value);
      return;
    }
  }
  add_member(object, key, std::move(value));
}

bool same_json(const JsonValue& a, const JsonValue& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonValue::Kind::null:
      return true;
    case JsonValue::Kind::boolean:
      return a.boolean == b.boolean;
    case JsonValue::Kind::number:
      return a.integer && b.integer ? *a.integer == *b.integer : a.number == b.number;
    case JsonValue::Kind::string:
      return a.text == b.text;
    case JsonValue::Kind::array:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_json);
    case JsonValue::Kind::object:
      return same_members(a, b);
  }
  return false;
}

std::string write_json(const JsonValue& value, int indent) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  return to_library(value).dump(indent == 0 ? -1 : indent, ' ', false, Handler::replace);
}

}  // namespace sherd
