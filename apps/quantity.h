#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sherd {

/// Numbers as people read and write them.

/// "17.2 GiB"; bytes below 1 KiB as they are.
std::string bytes_text(std::int64_t bytes);
/// "5.1 M"; below 1000 with one decimal where it counts.
std::string count_text(double count);
/// "3m 56s", "2h 05m", "8s".
std::string duration_text(double seconds);
/// "1 step", "2 steps".
std::string counted(std::int64_t count, std::string_view noun);
/// "rank 3", "ranks 0-2 and 5", of ranks in rising order.
std::string ranks_text(const std::vector<int>& ranks);

/// "24GiB", "1.5 MB", "4096" in bytes; throws ArgumentError that shows how to write a size.
std::int64_t parse_bytes(std::string_view text);
/// Sizes between commas: "24GiB,11GiB".
std::vector<std::int64_t> parse_byte_list(std::string_view text);

}  // namespace sherd
