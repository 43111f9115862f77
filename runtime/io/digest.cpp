#include "runtime/io/digest.h"

#include <xxhash.h>

#include "core/error.h"

namespace sherd {

std::uint64_t digest(const void* data, std::int64_t bytes, std::uint64_t seed) {
  require(bytes >= 0, "a digest of {} bytes was asked for", bytes);
  return XXH3_64bits_withSeed(data, static_cast<std::size_t>(bytes), seed);
}

}  // namespace sherd
