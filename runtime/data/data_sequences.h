#pragma once

#include <cstdint>

namespace sherd {

/// Numbers of the random sequences that data draws from, apart from those of parameters and
/// dropout. Each has room for 2^40 numbers of its own, such as the epoch.
enum class DataSequence : std::uint64_t {
  order = 0xDA7A'00ull << 40,
  synthetic_tokens = 0xDA7A'01ull << 40,
  synthetic_successors = 0xDA7A'02ull << 40,
  synthetic_features = 0xDA7A'03ull << 40,
  synthetic_teacher = 0xDA7A'04ull << 40,
  held_out = 0xDA7A'05ull << 40,
};

}  // namespace sherd
