#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Where something was written. Line 0: not in a file, `source` says it all ("--set steps=5").
struct Place {
  std::string source;
  int line = 0;
  int column = 0;
};

/// "run.json:3:14", or the source alone.
std::string to_string(const Place& place);

struct JsonMember;

/// A JSON value that knows where it was written. Plain data; only the fields of its kind are set.
struct JsonValue {
  enum class Kind { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0.0;
  std::optional<std::int64_t> integer;  ///< parsed: exactly, when it is whole; 1e8 and 3.0 are
  std::string text;
  std::vector<JsonValue> items;
  std::vector<JsonMember> members;  ///< in the order of the text; keys are unique
  Place place;

  /// The member's value, or nullptr.
  const JsonValue* find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  Place place;
  JsonValue value;
};

JsonValue json_of(bool value);
JsonValue json_of(int value);
JsonValue json_of(std::int64_t value);
JsonValue json_of(double value);
/// The shortest decimal that gives back the float, not the digits of its double.
JsonValue json_of(float value);
JsonValue json_of(std::string_view text);
JsonValue json_of(const char* text);
JsonValue json_of(const std::vector<std::int64_t>& values);
JsonValue json_of(const std::vector<double>& values);
JsonValue json_object();

/// Adds a member that the object does not have; unlike set_member it does not look for it.
void add_member(JsonValue& object, std::string_view key, JsonValue value);
/// Sets or replaces a member of an object.
void set_member(JsonValue& object, std::string_view key, JsonValue value);

/// Same value; 1 and 1.0 are the same, and so are objects whose members differ in order.
bool same_json(const JsonValue& a, const JsonValue& b);

/// Parses JSON with `//` and `#` comments. Throws ArgumentError "source:line:column: …" on a syntax
/// error, a key given twice, or nesting deeper than 64.
JsonValue parse_json(std::string_view text, const std::string& source);

/// Parses a file; a UTF-8 byte order mark is skipped. Throws ArgumentError when it can't be read.
JsonValue read_json_file(const std::string& path);

/// Text of a value: on one line when `indent` is 0.
std::string write_json(const JsonValue& value, int indent = 0);

}  // namespace sherd
