#pragma once

#include <cstdint>

namespace sherd {

/// XXH3's 64-bit digest: detects damage, not malice. The same on every machine; the digest of a
/// range in pieces is made by passing the digest of one piece as the seed of the next.
std::uint64_t digest(const void* data, std::int64_t bytes, std::uint64_t seed = 0);

}  // namespace sherd
