#include "runtime/config/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/config/check.h"
#include "runtime/config/suggest.h"

namespace sherd {
namespace {

using Kind = JsonValue::Kind;

/// "auto" is a name in keys that hold any string.
bool is_auto(const SchemaKey* key, const JsonValue& value) {
  const bool names = key != nullptr && key->type == ValueType::string && key->choices.empty() &&
                     !is_deepspeed(*key);
  return value.kind == Kind::string && value.text == "auto" && !names;
}

bool is_below(std::string_view path, std::string_view section) {
  return path.size() > section.size() && path.starts_with(section) && path[section.size()] == '.';
}

/// `text` as JSON, or as a string when it does not look like JSON.
JsonValue parse_assigned(std::string_view text, const std::string& source) {
  const bool looks_like_json = text.find_first_of("{[\"") == 0;
  JsonValue value = json_of(text);
  try {
    value = parse_json(text, source);
  } catch (const ArgumentError&) {
    if (looks_like_json) throw;
  }
  return value;
}

void set_place(JsonValue& value, const Place& place) {
  value.place = place;
  for (JsonValue& item : value.items) set_place(item, place);
  for (JsonMember& member : value.members) {
    member.place = place;
    set_place(member.value, place);
  }
}

}  // namespace

std::string to_string(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::given:
      return to_string(origin.place);
    case Origin::Kind::standard:
      return "default";
    case Origin::Kind::derived:
      return origin.why.empty() ? "default" : "derived: " + origin.why;
  }
  return "?";
}

void Settings::add(const JsonValue& document, Source source) {
  const std::string section = source == Source::folder ? "model" : "";
  require(document.kind == Kind::object, "{}: expected a JSON object, {{…}}",
          to_string(document.place));
  if (file_.empty()) file_ = document.place.source;
  collect(document, section, source);
}

void Settings::collect(const JsonValue& object, const std::string& section, Source source) {
  for (const JsonMember& member : object.members) {
    const std::string path = member_path(section, member.key);
    if (schema_.find(path) == nullptr && !schema_.is_section(path)) {
      unknown(member, section, source);
    } else {
      collect_member(member, path, source);
    }
  }
}

void Settings::collect_member(const JsonMember& member, const std::string& path, Source source) {
  const SchemaKey* key = schema_.find(path);
  const JsonValue& value = member.value;
  if (value.kind == Kind::null) return;
  if (is_auto(key, value)) {
    automatic_.emplace(path, value.place);
  } else if (key != nullptr) {
    store(*key, value, source);
  } else {
    require(value.kind == Kind::object, "{}: {}: {}", to_string(value.place), path,
            no_section(schema_, path, value));
    collect(value, path, source);
  }
}

void Settings::store(const SchemaKey& key, const JsonValue& value, Source source) {
  require(source != Source::deepspeed || is_deepspeed(key),
          "{}: {} is Sherd's own key; it belongs in the run file, not in a DeepSpeed file",
          to_string(value.place), key.path);
  const auto found = settings_.find(key.path);
  if (source == Source::folder && found != settings_.end()) return;
  JsonValue good = checked(key, value);
  require(found == settings_.end() || same_json(found->second.value, good),
          "{}: {} is {}, but {} gives {}; take one of them out, or decide with --set {}=…",
          to_string(value.place), key.path, write_json(good), to_string(found->second.origin),
          write_json(found->second.value), key.path);
  if (found != settings_.end()) return;
  Origin origin{Origin::Kind::given, value.place, {}};
  settings_.emplace(key.path,
                    Setting{std::move(good), std::move(origin), source == Source::folder});
}

void Settings::unknown(const JsonMember& member, const std::string& section, Source source) {
  const std::string text =
      fmt::format("{}: {}", to_string(member.place), unknown_key(schema_, section, member.key));
  const bool tolerated = source == Source::folder && section == "model";
  if (!tolerated) throw ArgumentError(text);
  warn(
      fmt::format("{}: \"{}\" is unknown, and has no effect", to_string(member.place), member.key));
  set_member(carried_, member.key, member.value);
}

void Settings::set(std::string_view assignment) {
  const std::string source = fmt::format("--set {}", assignment);
  const auto equals = assignment.find('=');
  require(equals != std::string_view::npos && equals > 0,
          "{}: expected key=value, such as --set steps=50", source);
  const std::string path(assignment.substr(0, equals));
  require(equals + 1 < assignment.size(), "{}: there is no value after '='", source);
  JsonValue value = parse_assigned(assignment.substr(equals + 1), source);
  set_place(value, {source, 0, 0});
  const std::string section(section_of(path));
  const JsonMember member{std::string(last_name(path)), value.place, value};
  if (schema_.find(path) == nullptr && !schema_.is_section(path)) {
    const std::string known = schema_.is_section(section) ? section : std::string();
    const std::string_view name =
        schema_.is_section(section) ? last_name(path) : std::string_view(path);
    throw ArgumentError(fmt::format("{}: {}", source, unknown_key(schema_, known, name)));
  }
  erase_below(path);
  collect_member(member, path, Source::run);
}

void Settings::erase_below(std::string_view path) {
  const auto covered = [&](const auto& entry) {
    return entry.first == path || is_below(entry.first, path);
  };
  std::erase_if(settings_, covered);
  std::erase_if(automatic_, covered);
}

void Settings::check_applies(std::string_view section, std::string_view type) {
  for (auto entry = settings_.begin(); entry != settings_.end();) {
    const SchemaKey* key = schema_.find(entry->first);
    const bool other = is_below(entry->first, section) && key != nullptr && !key->applies.empty();
    const std::vector<std::string> types = split_choices(other ? key->applies : "");
    if (!other || std::find(types.begin(), types.end(), type) != types.end()) {
      ++entry;
      continue;
    }
    const std::string message = fmt::format("{} has no such key; {} has", type, joined(types));
    if (!entry->second.from_folder) fail(entry->first, message);
    warn(fmt::format("{}: {}: {}", to_string(entry->second.origin), entry->first, message));
    set_member(carried_, last_name(entry->first), entry->second.value);
    entry = settings_.erase(entry);
  }
}

bool Settings::given(std::string_view path) const {
  const Setting* setting = find(path);
  return setting != nullptr && setting->origin.kind == Origin::Kind::given;
}

bool Settings::automatic(std::string_view path) const { return automatic_.contains(path); }

const Place& Settings::place_of_automatic(std::string_view path) const {
  return automatic_.find(path)->second;
}

bool Settings::any_given(std::string_view section) const {
  return std::any_of(settings_.begin(), settings_.end(), [&](const auto& entry) {
    return is_below(entry.first, section) && entry.second.origin.kind == Origin::Kind::given;
  });
}

const Setting* Settings::find(std::string_view path) const {
  const auto found = settings_.find(path);
  return found == settings_.end() ? nullptr : &found->second;
}

const JsonValue& Settings::value_of(std::string_view path) {
  const auto found = settings_.find(path);
  if (found != settings_.end()) return found->second.value;
  const SchemaKey* key = schema_.find(path);
  if (key == nullptr || key->standard.empty()) {
    fail(path, fmt::format("is missing: {}", key == nullptr ? "?" : key->meaning));
  }
  Setting setting{parse_json(key->standard, "default"), {}, false};
  return settings_.emplace(path, std::move(setting)).first->second.value;
}

bool Settings::boolean(std::string_view path) { return value_of(path).boolean; }
std::int64_t Settings::integer(std::string_view path) { return *value_of(path).integer; }
double Settings::number(std::string_view path) { return value_of(path).number; }
std::string Settings::text(std::string_view path) { return value_of(path).text; }

std::vector<double> Settings::numbers(std::string_view path) {
  std::vector<double> values;
  for (const JsonValue& item : value_of(path).items) values.push_back(item.number);
  return values;
}

std::vector<std::int64_t> Settings::integers(std::string_view path) {
  std::vector<std::int64_t> values;
  for (const JsonValue& item : value_of(path).items) values.push_back(*item.integer);
  return values;
}

bool Settings::boolean_or(std::string_view path, bool value, std::string why) {
  if (find(path) == nullptr) derive(path, json_of(value), std::move(why));
  return boolean(path);
}

std::int64_t Settings::integer_or(std::string_view path, std::int64_t value, std::string why) {
  if (find(path) == nullptr) derive(path, json_of(value), std::move(why));
  return integer(path);
}

double Settings::number_or(std::string_view path, double value, std::string why) {
  if (find(path) == nullptr) derive(path, json_of(value), std::move(why));
  return number(path);
}

std::string Settings::text_or(std::string_view path, std::string_view value, std::string why) {
  if (find(path) == nullptr) derive(path, json_of(value), std::move(why));
  return text(path);
}

void Settings::default_to(std::string_view path, JsonValue value) {
  if (find(path) == nullptr) settings_.emplace(path, Setting{std::move(value), {}, false});
}

void Settings::derive(std::string_view path, JsonValue value, std::string why) {
  settings_.insert_or_assign(
      std::string(path),
      Setting{std::move(value), {Origin::Kind::derived, {}, std::move(why)}, false});
}

void Settings::fail(std::string_view path, const std::string& message) const {
  const std::string place = given(path) ? to_string(find(path)->origin.place) : file_;
  throw ArgumentError(fmt::format("{}: {}: {}", place, path, message));
}

}  // namespace sherd
