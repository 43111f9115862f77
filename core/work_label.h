#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sherd {

/// Where a recorded step is. Each lane whose operations other ranks take part in writes to host
/// memory (`mark`) which of the step's nodes it is at, and each waits for earlier nodes only.
struct RecordedPlace {
  std::span<const std::string> nodes;  ///< what each is, by number
  std::span<std::uint32_t> lanes;      ///< the node of each lane; nodes.size() at its end

  /// The first node that may not be over.
  std::uint32_t first() const;
  /// Changes whenever a lane goes on.
  std::uint64_t progress() const;
};

/// What enqueued operations belong to, for messages about those that fail or hang.
struct WorkLabel {
  std::int64_t step = 0;       ///< 0 outside of steps
  const char* what = nullptr;  ///< "backward of block.3"; outlives the streams that carry it
  const RecordedPlace* recorded = nullptr;  ///< of a recorded step, instead; likewise
};

/// "step 12, backward of block.3", "step 12 (recorded), forward: gather of block.3", or what of it
/// is known.
std::string describe(const WorkLabel& label);

}  // namespace sherd
