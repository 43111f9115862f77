#pragma once

#include <string>

#include "runtime/config/json.h"
#include "runtime/config/schema.h"

namespace sherd {

/// Throws ArgumentError, with the value's place, unless it has the key's type, range and choices.
/// Returns the value with a choice in the schema's spelling.
JsonValue checked(const SchemaKey& key, const JsonValue& value);

/// What a key accepts, for people: "an integer from 0 to 3", "fast or exact".
std::string expectation(const SchemaKey& key);

/// Whether the value asks for what Sherd does anyway: one of `agrees`, or, for a section that is
/// not looked into, empty or `"enabled": false`.
bool agrees(const SchemaKey& key, const JsonValue& value);

/// "unknown key "stagee" in zero_optimization; did you mean "stage"?"
std::string unknown_key(const Schema& schema, std::string_view section, std::string_view name);

/// "got 3, expected a section with enabled, loss_scale"
std::string no_section(const Schema& schema, std::string_view section, const JsonValue& value);

}  // namespace sherd
