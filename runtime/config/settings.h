#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/json.h"
#include "runtime/config/schema.h"

namespace sherd {

/// Where a value comes from.
struct Origin {
  enum class Kind { given, standard, derived };
  Kind kind = Kind::standard;
  Place place;      ///< given: where
  std::string why;  ///< derived: from what; empty: a default that is not in the schema
};

/// "run.json:3:14", "default", "derived: hidden_size / num_attention_heads".
std::string to_string(const Origin& origin);

struct Setting {
  JsonValue value;
  Origin origin;
  bool from_folder = false;  ///< config.json of a model folder gave it
};

/// Flat values by key path, checked against the schema as they come in. Reading a key that was not
/// given records its default, so what was read is what `config show` shows.
class Settings {
 public:
  enum class Source {
    run,        ///< a run file: every key
    deepspeed,  ///< a DeepSpeed file: its keys only
    folder,  ///< config.json of a model folder, for `model`: gives way to keys that are there, and
             ///< what it holds beyond the schema is a warning
  };

  /// Takes a document in. Throws ArgumentError, with its place, on an unknown key, a value of the
  /// wrong type or range, and a key that another document gives differently. "auto" and null leave
  /// a key not given.
  void add(const JsonValue& document, Source source);
  /// Takes `a.b=JSON` in, in place of whatever was given for a.b and below. A word that is no JSON
  /// is a string.
  void set(std::string_view assignment);
  /// Throws ArgumentError when a key was given in `section` that its `type` does not have; where a
  /// model folder gave it, that is a warning.
  void check_applies(std::string_view section, std::string_view type);

  bool given(std::string_view path) const;
  /// Whether it was given as "auto".
  bool automatic(std::string_view path) const;
  const Place& place_of_automatic(std::string_view path) const;
  /// Whether a key of the section was given.
  bool any_given(std::string_view section) const;
  const Setting* find(std::string_view path) const;

  /// The value given, or the schema's default.
  bool boolean(std::string_view path);
  std::int64_t integer(std::string_view path);
  double number(std::string_view path);
  std::string text(std::string_view path);
  std::vector<double> numbers(std::string_view path);
  std::vector<std::int64_t> integers(std::string_view path);

  /// The value given, or `value`, which is recorded as derived.
  bool boolean_or(std::string_view path, bool value, std::string why);
  std::int64_t integer_or(std::string_view path, std::int64_t value, std::string why);
  double number_or(std::string_view path, double value, std::string why);
  std::string text_or(std::string_view path, std::string_view value, std::string why);

  /// Records a default that the schema can't hold.
  void default_to(std::string_view path, JsonValue value);
  /// Records a value that was not given.
  void derive(std::string_view path, JsonValue value, std::string why);

  /// Throws ArgumentError "place: path: message"; the place of a key that was not given is the
  /// file.
  [[noreturn]] void fail(std::string_view path, const std::string& message) const;

  const Schema& schema() const { return schema_; }
  /// The first document, as errors call it.
  const std::string& file() const { return file_; }
  const std::map<std::string, Setting, std::less<>>& all() const { return settings_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// Members of a model folder's config.json that the schema does not know.
  const std::vector<JsonMember>& carried() const { return carried_.members; }
  void warn(std::string message) { warnings_.push_back(std::move(message)); }

 private:
  void collect(const JsonValue& object, const std::string& section, Source source);
  void collect_member(const JsonMember& member, const std::string& path, Source source);
  void store(const SchemaKey& key, const JsonValue& value, Source source);
  void unknown(const JsonMember& member, const std::string& section, Source source);
  const JsonValue& value_of(std::string_view path);
  void erase_below(std::string_view path);

  Schema schema_;
  std::string file_;  // the first document's
  std::map<std::string, Setting, std::less<>> settings_;
  std::map<std::string, Place, std::less<>> automatic_;
  std::vector<std::string> warnings_;
  JsonValue carried_;  // an object
};

}  // namespace sherd
