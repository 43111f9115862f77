#pragma once

#include <string>
#include <vector>

namespace sherd {

/// "0-3,8" of rising core numbers; "none" of none.
std::string core_list_text(const std::vector<int>& cores);

/// The way back, from lists as the kernel writes them. Stops at what is no list.
std::vector<int> parse_core_list(const std::string& text);

}  // namespace sherd
