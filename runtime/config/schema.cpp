#include "runtime/config/schema.h"

#include <algorithm>

namespace sherd {

std::string_view name_of(ValueType type) {
  switch (type) {
    case ValueType::boolean:
      return "true or false";
    case ValueType::integer:
      return "an integer";
    case ValueType::number:
      return "a number";
    case ValueType::string:
      return "a string";
    case ValueType::integers:
      return "a list of integers";
    case ValueType::numbers:
      return "a list of numbers";
    case ValueType::strings:
      return "a list of strings";
    case ValueType::weights:
      return "a word or a list of numbers";
    case ValueType::any:
      return "JSON";
  }
  return "?";
}

std::string_view name_of(Fate fate) {
  switch (fate) {
    case Fate::own:
      return "own";
    case Fate::honoured:
      return "honoured";
    case Fate::approximated:
      return "approximated";
    case Fate::no_effect:
      return "no effect";
    case Fate::refused:
      return "refused";
  }
  return "?";
}

Schema::Schema() {
  for (const auto table :
       {run_keys(), engine_keys(), optim_keys(), zero_keys(), tool_keys(), model_keys()}) {
    for (const SchemaKey& key : table) add(key);
  }
  for (const std::string_view path : carried_model_keys()) {
    if (find(path) != nullptr) continue;  // some models do something with it
    add({.path = path,
         .type = ValueType::any,
         .meaning = "changes nothing in training",
         .fate = Fate::no_effect,
         .note = "kept, and written with the trained model"});
  }
}

void Schema::add(const SchemaKey& key) {
  index_.emplace(key.path, keys_.size());
  keys_.push_back(key);
  for (std::string_view path = key.path; !path.empty(); path = section_of(path)) {
    std::vector<std::string>& names = sections_[std::string(section_of(path))];
    const std::string name(last_name(path));
    if (std::find(names.begin(), names.end(), name) != names.end()) break;
    names.push_back(name);
  }
}

const SchemaKey* Schema::find(std::string_view path) const {
  const auto found = index_.find(path);
  return found == index_.end() ? nullptr : &keys_[found->second];
}

bool Schema::is_section(std::string_view path) const { return sections_.contains(path); }

const std::vector<std::string>& Schema::children(std::string_view section) const {
  return sections_.find(section)->second;
}

bool is_model_key(const SchemaKey& key) { return key.path.starts_with("model."); }

bool is_deepspeed(const SchemaKey& key) { return key.fate != Fate::own && !is_model_key(key); }

std::string_view last_name(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string_view section_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string member_path(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

}  // namespace sherd
