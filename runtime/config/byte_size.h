#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// "17.2 GiB"; bytes below 1 KiB as they are.
std::string bytes_text(std::int64_t bytes);
/// The same of a size to give: no less than `bytes` when it is read again.
std::string bytes_text_up(std::int64_t bytes);
/// "24GiB", "1.5 MB", "4096" in bytes; throws ArgumentError that shows how to write a size.
std::int64_t parse_bytes(std::string_view text);
/// Sizes between commas: "24GiB,11GiB".
std::vector<std::int64_t> parse_byte_list(std::string_view text);

}  // namespace sherd
