#pragma once

#include <string>
#include <string_view>

#include "runtime/config/load.h"

namespace sherd {

/// Member of a resolved file that says where its values come from. A value that was derived stands
/// there with itself, so that whoever reads the file derives it anew unless it was changed.
inline constexpr std::string_view kOriginsKey = "_origins";

/// `config show`: a line per value, with its origin. Values that need the number of ranks say so
/// until resolve_for_world.
std::string config_table(const LoadedConfig& config);

/// The resolved run file: every value, and `_origins`. It can be loaded as a run file.
std::string config_json(const LoadedConfig& config);

}  // namespace sherd
