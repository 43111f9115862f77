#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sherd {

/// Parses JSON that must be well-formed, name no key twice and nest at most `max_depth` objects and
/// arrays; anything else is a DataError that starts with `what`.
nlohmann::json parse_strict_json(std::string_view text, const std::string& what, int max_depth);

/// A value as text for a message, cut when it is long.
std::string excerpt(const nlohmann::json& value);

}  // namespace sherd
