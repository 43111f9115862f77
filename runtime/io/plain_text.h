#pragma once

#include <string>
#include <string_view>

namespace sherd {

/// Why a file that should be text in UTF-8 is none, by its first bytes, and the command that makes
/// such text of it: "t.csv is UTF-16; …". Empty where nothing speaks against it.
std::string why_not_text(std::string_view content, const std::string& path);

/// Throws why_not_text as a DataError.
void require_text(std::string_view content, const std::string& path);

/// All of a text file; throws as read_file and require_text do.
std::string read_text(const std::string& path);

}  // namespace sherd
