#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

enum class ValueType {
  boolean,
  integer,
  number,
  string,
  integers,  ///< list of integers
  numbers,   ///< list of numbers
  strings,   ///< list of strings
  weights,   ///< a word, or a list of numbers with one per rank
  any,       ///< whatever JSON; a section that Sherd does not look into
};

/// What becomes of a key that another system defined: DeepSpeed's, or Hugging Face's in `model`.
enum class Fate {
  own,           ///< Sherd's own key
  honoured,      ///< does what it does there
  approximated,  ///< does something close; `note` says what
  no_effect,     ///< what it controls does not exist here; `note` says why
  refused,       ///< an error; `note` says why
};

std::string_view name_of(ValueType type);
std::string_view name_of(Fate fate);

/// One row of the schema, from which checking, the editor schema, `config show` and the reference
/// come. A value that `agrees` is honoured whatever `fate` says of the others.
struct SchemaKey {
  std::string_view path;  ///< "zero_optimization.stage"
  ValueType type = ValueType::any;
  std::string_view meaning = {};    ///< one line
  std::string_view standard = {};   ///< default as JSON; empty: none, see `otherwise`
  std::string_view otherwise = {};  ///< what is done when it is not given and there is no default
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string_view choices = {};  ///< "a|b|c"
  std::string_view applies = {};  ///< the types of its section that have this key: "llama|qwen2"
  Fate fate = Fate::own;
  std::string_view agrees = {};  ///< JSON values, as "a|b", that ask for what Sherd does anyway
  std::string_view note = {};
  std::string_view others = {};  ///< what to say of a word that is none of the choices
};

/// The tables, by section.
std::span<const SchemaKey> run_keys();     // Sherd's own
std::span<const SchemaKey> model_keys();   // Hugging Face's
std::span<const SchemaKey> engine_keys();  // DeepSpeed's top level and precision
std::span<const SchemaKey> optim_keys();   // DeepSpeed's optimizer and scheduler
std::span<const SchemaKey> zero_keys();    // DeepSpeed's zero_optimization
std::span<const SchemaKey> tool_keys();    // DeepSpeed's monitors, profilers, tuners, …
/// Keys of Hugging Face that change nothing in training; kept and written back.
std::span<const std::string_view> carried_model_keys();

/// All tables together, with look-up by path.
class Schema {
 public:
  Schema();

  std::span<const SchemaKey> keys() const { return keys_; }
  const SchemaKey* find(std::string_view path) const;
  /// Whether keys start with `path` and a dot; the root is "".
  bool is_section(std::string_view path) const;
  /// Names directly below a section.
  const std::vector<std::string>& children(std::string_view section) const;

 private:
  void add(const SchemaKey& key);

  std::vector<SchemaKey> keys_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, std::vector<std::string>, std::less<>> sections_;
};

/// Whether a DeepSpeed file may hold the key.
bool is_deepspeed(const SchemaKey& key);
bool is_model_key(const SchemaKey& key);

/// "zero_optimization.stage" → "stage"; the whole of it when there is no dot.
std::string_view last_name(std::string_view path);
/// "zero_optimization.stage" → "zero_optimization"; "" when there is no dot.
std::string_view section_of(std::string_view path);
/// Path of a member of a section; the root section is "".
std::string member_path(std::string_view section, std::string_view name);

}  // namespace sherd
