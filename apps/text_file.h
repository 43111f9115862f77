#pragma once

#include <string>

namespace sherd {

/// Writes a file that was asked for by name, and says so; throws ArgumentError when it can't.
void write_text_file(const std::string& path, const std::string& text);

}  // namespace sherd
