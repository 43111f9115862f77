#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/counted.h"
#include "runtime/config/byte_size.h"

namespace sherd {

/// Numbers as people read and write them.

/// "5.1 M"; below 1000 with one decimal where it counts.
std::string count_text(double count);
/// "3m 56s", "2h 05m", "8s".
std::string duration_text(double seconds);
/// "rank 3", "ranks 0-2 and 5", of ranks in rising order.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace sherd
