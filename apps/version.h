#pragma once

#include <string>

namespace sherd {

/// "sherd 0.1.0" and what it is built with, a line each, or one JSON object.
std::string version_text(bool json);

}  // namespace sherd
