#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; letters of
/// either case are the same.
int edit_distance(std::string_view a, std::string_view b);

/// The choice that `word` was probably meant to be, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);

/// Splits "a|b|c".
std::vector<std::string> split_choices(std::string_view choices);

/// "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace sherd
