#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sherd {

/// A flat buffer whose states are cut among ranks, as memory sees it.
struct SharedBuffer {
  std::int64_t numel = 0;
  std::vector<int> element_bytes;  ///< of each region that holds a rank's part of it
};

/// What a rank that holds `numel` elements of the buffer takes for them, aligned as regions are.
std::int64_t bytes_at_rest(const SharedBuffer& buffer, std::int64_t numel);
std::int64_t bytes_at_rest(std::span<const SharedBuffer> buffers);

enum class ShareBy {
  room,  ///< every rank the same part of its capacity
  order  ///< rank after rank up to its capacity
};

/// Per buffer the elements of each rank, in multiples of `granularity` but for a buffer's end. All
/// buffers are cut alike, so that every gather draws on every rank that holds something, and what
/// does not divide goes where there is room. No rank takes more than its capacity in bytes unless
/// all together hold less than is needed, or just as much; then each lacks as much as the others.
std::vector<std::vector<std::int64_t>> share_elements(std::span<const SharedBuffer> buffers,
                                                      std::span<const std::int64_t> capacities,
                                                      ShareBy by, std::int64_t granularity);

}  // namespace sherd
